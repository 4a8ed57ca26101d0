# SPDX-License-Identifier: Apache-2.0
"""Restarts: who is replaced, when, and when the job gives up."""

from datetime import datetime
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.api.status.activity import Activity
from dtjob.api.status.internal import Incident
from dtjob.api.status.progress import SavedCheckpoint
from dtjob.api.status.status import Status
from dtjob.objects.manifest import Manifest
from dtjob.objects.topology import Task
from dtjob.plan.actions import Create, Delete
from dtjob.plan.failure import decisions
from dtjob.plan.failure.decisions import EvaluatorDecision, GiveUp, Renew, Restart, TrainingDecision, Wait
from dtjob.plan.failure.restart import failures, restart_evaluator, restart_training
from dtjob.plan.record.failure import Cause
from dtjob.plan.seen.children import Children
from dtjob.plan.seen.situation import Situation
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.plan.history import History
from tests.unit.operator.ruled import FAIL_42, TARGET, out_of_memory_shows_late, planned, ruled


def decide(
    job: Job,
    pods: dict[str, Manifest],
    now: datetime = NOW,
    previous: Incident | None = None,
    step: int = -1,
    all_created: bool = True,
) -> TrainingDecision:
    """What becomes of the training after this incident and with a checkpoint of this step."""
    saved = SavedCheckpoint(step=step) if step >= 0 else None
    seen = builders.situation(
        job, *pods.values(), now=now, incident=previous, checkpoint=saved, all_created=all_created
    )
    return restart_training(seen, failures(seen))


def decide_evaluator(
    job: Job, *pods: Manifest, now: datetime, all_created: bool = False, training_replaced: tuple[Task, ...] = ()
) -> EvaluatorDecision:
    situation = builders.situation(job, *pods, now=now, all_created=all_created)
    return restart_evaluator(situation, failures(situation), training_replaced)


def replaced(decision: TrainingDecision | EvaluatorDecision) -> list[str]:
    return [task.id for task in decisions.replaced(decision)]


@pytest.mark.parametrize(
    ("strategy", "program", "failed", "expected"),
    [
        ("MultiWorkerMirrored", True, "worker-0", ["worker-0"]),
        ("MultiWorkerMirrored", True, "chief-0", ["chief-0"]),
        ("MultiWorkerMirrored", False, "worker-0", ["chief-0", "worker-0", "worker-1"]),
        ("ParameterServer", True, "ps-0", ["ps-0"]),
        ("ParameterServer", False, "ps-0", ["chief-0", "ps-0"]),
        ("ParameterServer", False, "worker-0", ["worker-0"]),
        ("ParameterServer", False, "chief-0", ["chief-0"]),
        ("Mirrored", False, "chief-0", ["chief-0"]),
        ("MultiWorkerMirrored", False, "evaluator-0", []),
    ],
)
def test_the_strategy_decides_which_tasks_are_replaced_after_a_failure(strategy, program, failed, expected):
    job = builders.job(strategy, program=program, ps=strategy == "ParameterServer", evaluator=True)
    pods = builders.all_pods(job, **{failed: builders.out_of_memory()})
    assert replaced(decide(job, pods)) == expected


def test_without_a_chief_worker_0_does_not_outlive_a_ps():
    job = builders.job("ParameterServer", chief=False, program=False, ps=1)
    assert replaced(decide(job, builders.all_pods(job, ps_0=builders.out_of_memory()))) == ["worker-0", "ps-0"]


LATE_CHIEF = builders.incident(5, Cause.SIGNAL)


@pytest.mark.parametrize(
    ("program", "chief_made", "finished_at", "previous", "expected"),
    [
        (True, at(7), at(6), LATE_CHIEF, ["worker-0"]),
        (True, None, at(6), LATE_CHIEF, ["worker-0"]),
        (True, at(7), at(600), LATE_CHIEF, []),  # it trained with this chief, which will end too
        (True, NOW, at(600), None, []),
        (True, at(7), at(6), None, []),  # nothing has failed, so no chief waits for it
        (False, at(7), at(6), LATE_CHIEF, []),
    ],
)
def test_a_worker_that_finished_before_the_chief_was_made_is_needed_again(
    program: bool, chief_made: datetime | None, finished_at: datetime, previous: Incident | None, expected: list[str]
):
    """It ended well just after its chief's end was judged a failure; the new chief would wait for it for ever."""
    job = builders.job(program=program, status=builders.at_attempts({"chief-0": 1}))
    pods = builders.all_pods(job, chief_0=None, worker_0=builders.ended(0, finished_at))
    if chief_made:
        pods["chief-0"] = builders.pod(job, "chief-0", builders.running(), attempt=1, created=chief_made)
    assert replaced(decide(job, pods, at(601), previous, all_created=False)) == expected


WORKER_0_FINISHED = builders.remembered(finished=[{"role": "worker", "attempt": 0, "indexes": "0"}])
GATHERS = {
    "attempt": 0,
    "state": "waiting",
    "lastRestart": {"time": "2026-11-21T10:10:00Z", "cause": "worker-1 was lost"},
}


@pytest.mark.parametrize(
    ("report", "gone", "expected"),
    [
        (GATHERS, False, ["worker-0"]),
        (GATHERS, True, ["worker-0"]),
        ({**GATHERS, "state": "training"}, True, []),
        ({**GATHERS, "attempt": 1}, True, []),  # of another pod
        ({**GATHERS, "lastRestart": {"time": "2026-11-21T09:59:00Z"}}, False, []),  # it finished after that
        ({**GATHERS, "lastRestart": {"time": "2026-11-21T10:10:00"}}, True, []),
        ({**GATHERS, "lastRestart": ["soon"]}, True, []),
        ({"attempt": 0, "state": "waiting"}, True, []),
        ({}, True, []),
    ],
)
def test_a_worker_that_was_evicted_when_it_had_finished_is_needed_where_the_chief_starts_again_in_place(
    report: dict[str, Any], gone: bool, expected: list[str]
):
    job = builders.job(status=WORKER_0_FINISHED)
    pods = builders.all_pods(job, worker_0=None if gone else builders.disrupted() | builders.ended(0, at(60)))
    situation = Situation.of(job, Children(tuple(pods.values()), {"chief-0": report}), at(700))
    assert replaced(restart_training(situation, failures(situation))) == expected


@pytest.mark.parametrize(
    ("strategy", "program", "expected"),
    [
        ("MultiWorkerMirrored", True, ["worker-0", "worker-1"]),
        ("MultiWorkerMirrored", False, ["chief-0", "worker-0", "worker-1"]),
        ("ParameterServer", True, ["worker-1"]),
        ("ParameterServer", False, ["worker-1"]),
    ],
)
def test_a_finished_tasks_pod_may_go_and_the_strategy_decides_whether_it_is_needed_again(strategy, program, expected):
    job = builders.job(strategy, program=program, status=WORKER_0_FINISHED)
    assert decide(job, builders.all_pods(job, worker_0=None)) is None
    assert replaced(decide(job, builders.all_pods(job, worker_0=None, worker_1=builders.out_of_memory()))) == expected


def test_failures_that_may_follow_from_another_wait_for_the_first_cause():
    """Without a supervisor all end together; the one that was killed may show a moment later."""
    job = builders.job(program=False)
    pods = builders.all_pods(job, worker_0=builders.ended(1))
    assert decide(job, pods, at(1)) == Wait(at(2))
    pods["worker-1"]["status"] = builders.out_of_memory(at(1))
    late = decide(job, pods, at(2))
    assert isinstance(late, Restart)
    assert (late.first.task.id, late.first.cause) == ("worker-1", Cause.OOM_KILLED)


def test_with_a_supervisor_a_failure_waits_for_no_other_though_a_worker_has_finished():
    """The finished worker is made again with the one that failed. It shows nothing of the cause."""
    job = builders.job(status=WORKER_0_FINISHED)
    pods = builders.all_pods(job, worker_0=builders.ended(0, at(10)), worker_1=builders.ended(1, at(19)))
    assert replaced(decide(job, pods, at(20))) == ["worker-0", "worker-1"]


@pytest.mark.parametrize("ended_at", [at(3600), None], ids=["of a node whose clock is ahead", "not recorded"])
def test_an_end_whose_time_says_nothing_does_not_delay_the_restart(ended_at: datetime | None):
    """One without a time would be just now at each look, and the others of its group would be waited for for ever."""
    job = builders.job(program=False)
    end = builders.ended(1, ended_at or NOW)
    if not ended_at:
        del end["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
    assert len(replaced(decide(job, builders.all_pods(job, worker_0=end), at(60)))) == 3


def test_a_new_pods_failure_is_charged_though_an_old_one_fails_with_it():
    """Else a pod that fails at each start would be free for as long as its peers fail too."""
    job = builders.job(workers=3, status=builders.at_attempts({"worker-0": 1}))
    pods = builders.all_pods(job, worker_0=builders.ended(1, at(15)), worker_2=builders.ended(1, at(14)))
    decision = decide(job, pods, at(16), builders.incident(10))
    assert isinstance(decision, Restart)
    assert (decision.incident.charged, decision.first.task.id) == (2, "worker-0")
    assert replaced(decision) == ["worker-0", "worker-2"]


def test_an_eviction_that_shows_late_gives_the_charge_back():
    job = builders.job()
    pods = builders.all_pods(job, worker_1=builders.disrupted(when=at(8)))
    decision = decide(job, pods, at(9), builders.incident(5))
    assert isinstance(decision, Restart)
    assert (decision.incident.cause, decision.incident.charged) == (Cause.DISRUPTION, 0)
    assert (decision.counted_as, decision.first.task.id) == (Cause.ERROR, "worker-1")


@pytest.mark.parametrize("spent", [0, 3])
def test_the_job_fails_once_its_budget_is_used_up_without_a_newer_checkpoint(spent: int):
    job = builders.job(failurePolicy={"maxRestartsWithoutProgress": 3})
    pods = builders.all_pods(job, worker_0=builders.out_of_memory(at(100)))
    previous = builders.incident(ends_at=at(40), charged=spent, in_a_row=spent, checkpoint_step=50)
    assert isinstance(decide(job, pods, at(100), previous, step=50), GiveUp) == (spent == 3)
    assert isinstance(decide(job, pods, at(100), previous, step=51), Restart)


@pytest.mark.parametrize(
    ("end", "before", "counted"),
    [
        (builders.out_of_memory(at(100)), 0, 1),
        (builders.out_of_memory(at(100)), 4, 5),
        (builders.out_of_memory(at(100)), 5, None),
        (builders.evicted(), 5, 5),
    ],
)
def test_max_restarts_limits_counted_restarts_of_the_whole_life(end: dict[str, Any], before: int, counted: int | None):
    """A newer checkpoint does not reset them."""
    job = builders.job(failurePolicy={"maxRestarts": 5})
    previous = builders.incident(ends_at=at(40), counted=before, checkpoint_step=50)
    decision = decide(job, builders.all_pods(job, worker_0=end), at(100), previous, step=90)
    assert isinstance(decision, Restart if counted is not None else GiveUp)
    if isinstance(decision, Restart):
        assert (decision.incident.charged, decision.incident.counted) == (counted - before, counted)


@pytest.mark.parametrize("status", [builders.evicted(), builders.ended(1, at(1)), builders.rejected()])
def test_an_evaluator_comes_back_after_its_wait_whether_or_not_its_failure_has_a_time(status: dict[str, Any]):
    job = builders.job(evaluator=True, status=builders.at_attempts({"evaluator-0": 1}))
    pod = builders.pod(job, "evaluator-0", status, attempt=1)
    assert decide_evaluator(job, pod, now=at(2)) == Wait(at(10))
    due = decide_evaluator(job, pod, now=at(10))
    assert isinstance(due, Renew)
    assert (due.failed, replaced(due)) == (True, ["evaluator-0"])
    assert replaced(decide_evaluator(job, now=NOW, all_created=True)) == ["evaluator-0"], "it has vanished"


@pytest.mark.parametrize(
    ("mount", "lost", "status", "expected"),
    [
        ("Chief", "chief-0", builders.running(), ["evaluator-0"]),
        ("Chief", "chief-0", builders.unschedulable(), ["evaluator-0"]),
        ("Chief", "chief-0", None, ["evaluator-0"]),
        ("Chief", "chief-0", {**builders.ended(1), "phase": "Running"}, ["evaluator-0"]),
        ("Chief", "chief-0", builders.ended(0), []),
        ("Chief", "chief-0", builders.ended(1), []),  # it has let go of the volume, and its own wait goes on
        ("Chief", "worker-0", builders.running(), []),
        ("All", "chief-0", builders.running(), []),
    ],
)
def test_an_evaluator_that_holds_the_chiefs_volume_follows_it(mount, lost, status, expected):
    volume = {"persistentVolumeClaim": {"claimName": "digits"}}
    checkpoint = {"storage": {"volume": volume, "mountOn": mount}}
    job = builders.job(evaluator=True, checkpoint=checkpoint, status=builders.at_attempts({"evaluator-0": 1}))
    pods = [builders.pod(job, "evaluator-0", status, attempt=1)] if status else []
    decision = decide_evaluator(job, *pods, now=at(1), training_replaced=(builders.task(lost),))
    assert replaced(decision) == expected


def test_fail_job_ends_the_job_with_a_condition_an_event_and_the_rule():
    job = ruled({"action": "Restart", "onSignals": ["SIGBUS"]}, FAIL_42)
    after, made = planned(job, {"worker-1": builders.ended(42, at(19))})
    words = after.status["message"]
    assert (after.status["phase"], after.status["reason"]) == ("Failed", "PodFailurePolicy")
    (condition,) = [one for one in after.status["conditions"] if one["type"] == "Failed"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "PodFailurePolicy", words)
    assert [(one.type, one.reason, one.message) for one in made.events] == [("Warning", "Failed", words)]
    assert after.status["lastFailure"]["rule"] == "failurePolicy.rules[1] (FailJob) matches exit code 42"
    assert after.status["restarts"]["total"] == 0
    assert not [one for one in made.actions if isinstance(one, Create)]
    removed = {one.name for one in made.actions if isinstance(one, Delete)}
    assert removed == {"digits-chief-0-0", "digits-worker-0-0", "digits-evaluator-0-0"}


@pytest.mark.parametrize(
    "reason", ["ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError"]
)
def test_fail_job_applies_to_a_container_that_cannot_start(reason: str):
    job = ruled({"action": "FailJob", "onReasons": [reason]})
    after, _ = planned(job, {"worker-1": builders.waiting(reason, "no such thing")}, allCreated=False)
    assert after.status["reason"] == "PodFailurePolicy"
    assert after.status["lastFailure"]["logTail"] == "no such thing"
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
    assert (after.status["phase"], after.status["lastFailure"]["task"]) == ("Restarting", "worker-0")
    states["worker-0"] = builders.ended(1, at(9))  # it is the first, and what is asked about
    assert planned(job, states)[0].status["phase"] == "Restarting"
    states["worker-0"] = builders.ended(42, at(9))
    after, _ = planned(job, states)
    assert (after.status["reason"], after.status["lastFailure"]["task"]) == ("PodFailurePolicy", "worker-0")


def test_fail_job_applies_to_later_failures_and_causes_of_an_incident_too():
    after, _ = planned(ruled(FAIL_42), {"worker-0": builders.disrupted(when=at(19))})
    after, _ = planned(after, {"worker-1": builders.ended(42, at(25))}, 26)
    assert after.status["reason"] == "PodFailurePolicy"
    _, late = out_of_memory_shows_late(ruled({"action": "FailJob", "onReasons": ["OOMKilled"]}))
    assert (late["reason"], late["lastFailure"]["cause"]) == ("PodFailurePolicy", "OOMKilled")


def test_fail_job_applies_to_the_evaluator_if_a_rule_names_it():
    failed = {"evaluator-0": builders.ended(42, at(19))}
    assert planned(ruled(FAIL_42), failed)[0].status["phase"] == "Running"
    after, _ = planned(ruled({**FAIL_42, "roles": ["evaluator"]}), failed)
    assert (after.status["reason"], after.status["lastFailure"]["task"]) == ("PodFailurePolicy", "evaluator-0")


@pytest.mark.parametrize("rule", [{"onReasons": ["OOMKilled"]}, {"roles": ["worker"]}])
@pytest.mark.parametrize(("since", "fails"), [(at(20), False), (NOW, True)])
def test_fail_job_does_not_apply_to_a_pod_that_saved_for_a_suspension(rule, since, fails):
    """The chief lost its peers in vain (76) and was replaced; then the job was suspended, and went on at 20 s."""
    first = {"task": "chief-0", "pod": "digits-chief-0-0", "cause": "Error", "exitCode": 76}
    remembered = builders.remembered({"chief-0": 2, "worker-0": 1, "worker-1": 1}, builders.incident(5))
    status = {**remembered, "lastFailure": first, "active": Activity(since=since).to_json()}
    job = builders.job(status=status, failurePolicy={"rules": [{"action": "FailJob", **rule}]})
    pods = builders.all_pods(job).values()
    old = builders.deleting(builders.pod(job, "worker-1", builders.out_of_memory(at(12))), at(10))
    made = builders.plan_answered(job, Children((*pods, old)), at(21))
    assert made.status["phase"] == ("Failed" if fails else "Running")


def test_a_pod_that_goes_while_another_is_made_anew_is_a_restart_too() -> None:
    """It was being deleted, and its end was not seen: only that it is missing."""
    history = History(builders.job())
    history.ends("worker-1", builders.ended(137, at(10)))
    history.look(at(10))
    history.lose("digits-chief-0-0")
    history.look(at(11))
    assert history.job.status["restarts"]["total"] == 1, "of one incident"
    history.look(at(12))
    assert {"chief-0-1", "worker-1-1"} <= set(history.tasks)
    assert "chief-0-0" not in history.tasks


@pytest.mark.parametrize("refused", ["worker-1", "evaluator-0"])
def test_a_pod_that_goes_while_another_was_never_made_is_a_restart_too(refused: str) -> None:
    """A quota has room for all but one. The ps goes unseen, and the chief fails of that."""
    job = builders.job("ParameterServer", ps=1, evaluator=True, program=False)
    pods = builders.all_pods(job)
    del pods[refused]
    job, _ = builders.looked(job, Children(tuple(pods.values())))
    pods["chief-0"]["status"] = builders.ended(1, NOW)
    del pods["ps-0"]
    job, _ = builders.looked(job, Children(tuple(pods.values())), at(5))
    assert job.status["restarts"]["causes"] == {"Deleted": 1}
    attempts = Status.read(job.status).internal.attempts
    assert (attempts.of("ps-0"), attempts.of(refused)) == (1, 0)
