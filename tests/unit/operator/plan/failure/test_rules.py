# SPDX-License-Identifier: Apache-2.0
"""Failure rules: which one matches a failure, and what is counted then."""

import pytest

from dtjob.api.spec.failure_rules import RuleAction
from dtjob.plan.actions import Create, Delete, Plan
from dtjob.plan.failure.rules import ruled as decided
from dtjob.plan.record.failure import Cause, Failure
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.ruled import FAIL_42, TARGET, out_of_memory_shows_late, planned, ruled


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_a_built_in_rule(cause: Cause):
    failure = Failure(builders.task("worker-0"), cause, NOW, "digits-worker-0-0", "", "failed", "")
    found = decided(builders.draft(builders.job()).situation, failure)
    expected = RuleAction.RESTART if cause.charged else RuleAction.RESTART_AND_IGNORE_MAX_RESTARTS
    assert (found.action, found.rule) == (expected, "")


def test_a_pod_that_cannot_start_is_no_failure_for_rules_without_reasons():
    job = ruled({"action": "FailJob", "roles": ["worker"]}, {"action": "Restart", "onReasons": ["ErrImagePull"]})
    assert "incident" not in planned(job, {"worker-1": builders.waiting("ImagePullBackOff")})[0].status["internal"]
    status = planned(job, {"worker-1": builders.waiting("ErrImagePull")})[0].status["internal"]
    assert (status["attempts"]["exceptions"], status["incident"]["charged"]) == ({"worker-1": 1}, 1)


def test_rules_read_the_first_cause_of_several_failures_and_fail_job_wins_for_any():
    uncounted = {"action": "RestartAndIgnoreMaxRestarts", "onPodConditions": [TARGET]}
    both = {"worker-0": builders.disrupted(when=at(19)), "worker-1": builders.ended(42, at(19))}
    after, _ = planned(ruled(uncounted, policy={"maxRestartsWithoutProgress": 0}), both)
    assert after.status["lastFailure"]["task"] == "worker-0"
    assert after.status["internal"]["incident"].get("charged", 0) == 0
    after, _ = planned(ruled(uncounted, FAIL_42), both)
    assert (after.status["reason"], after.status["lastFailure"]["task"]) == ("PodFailurePolicy", "worker-1")


@pytest.mark.parametrize(
    ("early", "late", "charged"),
    [
        ("RestartAndIgnoreMaxRestarts", "Restart", 1),
        ("Restart", "RestartAndIgnoreMaxRestarts", 0),
        ("Restart", "Restart", 1),
    ],
)
def test_a_charge_follows_the_cause_that_shows_late(early: str, late: str, charged: int):
    job = ruled({"action": late, "onReasons": ["OOMKilled"]}, {"action": early, "onSignals": ["SIGKILL"]})
    first, after = out_of_memory_shows_late(job)
    assert first["internal"]["incident"].get("charged", 0) == (early == "Restart")
    incident = after["internal"]["incident"]
    assert (incident.get("charged", 0), incident.get("uncharged", 0)) == (charged, 1 - charged)
    assert after["restarts"] == {"total": 1, "causes": {"OOMKilled": 1}}


def test_a_late_cause_that_is_charged_can_be_one_too_many():
    rules = (
        {"action": "Restart", "onReasons": ["OOMKilled"]},
        {"action": "RestartAndIgnoreMaxRestarts", "onSignals": ["SIGKILL"]},
    )
    _, after = out_of_memory_shows_late(ruled(*rules, policy={"maxRestartsWithoutProgress": 0}))
    assert after["reason"] == "MaxRestartsExceeded"


def pods_made_or_removed(made: Plan) -> list[str]:
    return [one.name for one in made.actions if isinstance(one, Create | Delete) and one.kind == "Pod"]


IGNORE = {"action": "LeaveFailed", "onExitCodes": {"operator": "In", "values": [3]}, "roles": ["evaluator"]}


def test_an_evaluator_that_is_ignored_is_not_replaced_and_not_waited_for():
    job = ruled(IGNORE)
    failed = {"evaluator-0": builders.ended(3, at(19))}
    after, made = planned(job, failed)
    assert [one.reason for one in made.events] == ["EvaluationGivenUp"]
    assert pods_made_or_removed(made) == []
    status = after.status
    assert (status["phase"], status["ready"], status["internal"]["allCreated"]) == ("Running", "3/4", True)
    assert status["replicaStatuses"]["evaluator"] == {"replicas": 1, "failed": 1}
    again, made = planned(after, failed, 300)
    assert (made.status, pods_made_or_removed(made), made.events) == (None, [], ())
    children = Children(tuple(pod for id_, pod in builders.all_pods(again).items() if id_ != "evaluator-0"))
    gone = builders.plan_answered(again, children, at(400))  # somebody has collected its pod
    assert (pods_made_or_removed(gone), gone.events) == ([], ())
    over, made = planned(again, {**failed, "chief-0": builders.ended(0, at(500))}, 501)
    assert over.status["phase"] == "Succeeded"
    assert "digits-evaluator-0-0" not in pods_made_or_removed(made)


@pytest.mark.parametrize("action", ["LeaveFailed", "FailJob"])
def test_a_rule_ends_the_evaluation_after_training_has_succeeded(action: str):
    job = ruled({**IGNORE, "action": action})
    after, _ = planned(job, {"chief-0": builders.ended(0, at(19))})
    over, made = planned(after, {"chief-0": builders.ended(0, at(19)), "evaluator-0": builders.ended(3, at(30))}, 31)
    assert over.status["phase"] == "Succeeded"
    assert [one.reason for one in made.events] == ["EvaluationGivenUp"]
    assert f"failurePolicy.rules[0] ({action}) matches exit code 3" in made.events[0].message
    assert "attempts" not in over.status["internal"]


def test_an_evaluator_that_cannot_start_waits_where_that_is_ignored():
    job = ruled({"action": "LeaveFailed", "onReasons": ["ErrImagePull"], "roles": ["evaluator"]})
    after, made = planned(job, {"evaluator-0": builders.waiting("ErrImagePull")})
    assert (pods_made_or_removed(made), "attempts" in after.status["internal"]) == ([], False)
