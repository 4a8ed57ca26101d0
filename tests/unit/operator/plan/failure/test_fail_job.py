# SPDX-License-Identifier: Apache-2.0
"""FailJob: over which failures a job ends at once, and how that shows."""

from __future__ import annotations

from datetime import datetime

import pytest

from dtjob.api.status.activity import Activity
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.incident import Incident
from dtjob.plan.actions import Create, Delete
from dtjob.plan.record.failure import Cause
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.ruled import FAIL_42, TARGET, planned, ruled


def test_fail_job_ends_with_a_condition_an_event_and_a_message_that_name_the_rule():
    after, made = planned(
        ruled({"action": "Restart", "onSignals": ["SIGBUS"]}, FAIL_42), {"worker-1": builders.ended(42, at(19))}
    )
    words = "worker-1 failed (exit code 42); failurePolicy.rules[1] (FailJob) matches exit code 42"
    status = after.status
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "PodFailurePolicy", words)
    (condition,) = [one for one in status["conditions"] if one["type"] == "Failed"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "PodFailurePolicy", words)
    assert [(one.type, one.reason, one.message) for one in made.events] == [("Warning", "Failed", words)]
    assert status["firstFailure"]["rule"] == "failurePolicy.rules[1] (FailJob) matches exit code 42"
    assert "restarts" not in status or status["restarts"]["total"] == 0
    assert not [one for one in made.actions if isinstance(one, Create)]
    removed = {one.name for one in made.actions if isinstance(one, Delete)}
    assert removed == {"digits-chief-0-0", "digits-worker-0-0", "digits-evaluator-0-0"}


@pytest.mark.parametrize(
    "reason", ["ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError"]
)
def test_fail_job_applies_to_a_container_that_cannot_start(reason: str):
    job = ruled({"action": "FailJob", "onReasons": [reason]})
    after, _ = planned(job, {"worker-1": builders.waiting(reason, "no such thing")}, allCreated=False)
    assert after.status["message"] == (
        f"worker-1 cannot start ({reason}); failurePolicy.rules[0] (FailJob) matches reason {reason}"
    )
    assert after.status["firstFailure"]["message"] == "no such thing"
    for states in ({"worker-1": builders.waiting("ContainerCreating")}, {"evaluator-0": builders.waiting(reason)}):
        assert planned(job, states)[0].status["phase"] != "Failed"


def test_fail_job_does_not_apply_to_errors_that_follow_from_a_lost_peer():
    """Without a supervisor all of a group fail with the first of them, with whatever code their program has for it."""
    job = ruled(FAIL_42, {"action": "RestartAndIgnoreMaxRestarts", "onPodConditions": [TARGET]}, program=False)
    states = {
        "worker-0": builders.disrupted(when=at(10)),
        "chief-0": builders.ended(42, at(10)),
        "worker-1": builders.ended(42, at(11)),
    }
    after, _ = planned(job, states)
    assert (after.status["phase"], after.status["firstFailure"]["task"]) == ("Restarting", "worker-0")
    states["worker-0"] = builders.ended(1, at(9))  # it is the first, and what is asked about
    after, _ = planned(job, states)
    assert after.status["phase"] == "Restarting"
    states["worker-0"] = builders.ended(42, at(9))
    after, _ = planned(job, states)
    assert after.status["message"].startswith("worker-0 failed (exit code 42)")


def test_fail_job_waits_for_a_cause_that_the_node_may_still_report():
    """The kubelet says last that it has evicted the pod whose container it has ended."""
    job = ruled({"action": "RestartAndIgnoreMaxRestarts", "onPodConditions": [TARGET]}, FAIL_42)
    ending = {**builders.ended(42, at(19)), "phase": "Running"}
    after, made = planned(job, {"worker-1": ending}, 20)
    assert (after.status["phase"], made.look_again_at) == ("Pending", at(29))
    told = {
        **builders.ended(42, at(19)),
        "conditions": [{**TARGET, "status": "True", "reason": "TerminationByKubelet"}],
    }
    assert planned(after, {"worker-1": told}, 21)[0].status["internal"]["incident"].get("charged", 0) == 0
    assert planned(after, {"worker-1": ending}, 30)[0].status["reason"] == "PodFailurePolicy"


def test_fail_job_applies_to_a_later_failure_of_the_same_incident():
    after, _ = planned(ruled(FAIL_42), {"worker-0": builders.disrupted(when=at(19))})
    after, _ = planned(after, {"worker-1": builders.ended(42, at(25))}, 26)
    assert after.status["reason"] == "PodFailurePolicy"


def test_fail_job_applies_to_a_cause_that_shows_late():
    """The pod was replaced, and only then its status says that it was out of memory."""
    job = ruled({"action": "FailJob", "onReasons": ["OOMKilled"]})
    job = builders.with_status(job, builders.remembered(allCreated=True))
    pods = builders.all_pods(job)
    pods["worker-1"]["status"] = {**builders.ended(137, at(19)), "phase": "Running"}
    made = builders.plan_answered(job, Children(tuple(pods.values())), at(20))
    assert made.status is not None
    job = builders.with_status(job, made.status)
    pods["worker-1"]["status"] = builders.out_of_memory(at(19))
    made = builders.plan_answered(job, Children(tuple(pods.values())), at(21))
    assert made.status is not None
    assert made.status["message"] == (
        "worker-1 ran out of memory (OOMKilled); failurePolicy.rules[0] (FailJob) matches reason OOMKilled"
    )


def test_fail_job_applies_to_the_evaluator_if_a_rule_names_it():
    failed = {"evaluator-0": builders.ended(42, at(19))}
    assert planned(ruled(FAIL_42), failed)[0].status["phase"] == "Running"
    after, _ = planned(ruled({**FAIL_42, "roles": ["evaluator"]}), failed)
    assert after.status["message"].startswith("evaluator-0 failed (exit code 42); failurePolicy.rules[0] (FailJob)")


@pytest.mark.parametrize("rule", [{"onReasons": ["OOMKilled"]}, {"roles": ["worker"]}])
@pytest.mark.parametrize(("since", "fails"), [(at(20), False), (NOW, True)])
def test_fail_job_does_not_apply_to_a_pod_that_saved_for_a_suspension(
    rule: dict[str, object], since: datetime, fails: bool
):
    """The chief lost its peers in vain (76) and was replaced; then the job was suspended, and went on at 20 s."""
    first = {"task": "chief-0", "pod": "digits-chief-0-0", "cause": "Error", "exitCode": 76}
    incident = Incident(
        started_at=at(5), cause=Cause.ERROR, not_before=at(5), charged=1, in_a_row=1, attempts=Attempts()
    )
    remembered = builders.remembered({"chief-0": 2, "worker-0": 1, "worker-1": 1}, incident)
    status = {**remembered, "firstFailure": first, "active": Activity(since=since).to_json()}
    job = builders.job(status=status, failurePolicy={"rules": [{"action": "FailJob", **rule}]})
    pods = builders.all_pods(job).values()
    old = builders.deleting(builders.pod(job, "worker-1", builders.out_of_memory(at(12))), at(10))
    made = builders.plan_answered(job, Children((*pods, old)), at(21))
    assert made.status is not None
    assert made.status["phase"] == ("Failed" if fails else "Running")
