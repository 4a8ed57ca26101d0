# SPDX-License-Identifier: Apache-2.0
"""Whether checkpoints outlive the chief's pod, what a restart promises, and from which step training really went on."""

from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.local.here import DEFAULTS as LOCAL
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.plan.plan import Plan, plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

CLAIM, EMPTY, HOST = {"persistentVolumeClaim": {"claimName": "a"}}, {"emptyDir": {}}, {"hostPath": {"path": "/data"}}


def saving(volume: dict[str, Any], strategy: str = "MultiWorkerMirrored") -> Job:
    return builders.job(strategy, checkpoint={"storage": {"volume": volume}})


def warnings(made: Plan) -> list[str]:
    return [one.message for one in made.events if one.reason == "CheckpointsNotKept"]


@pytest.mark.parametrize(
    ("volume", "status", "reason"),
    [(CLAIM, "True", "Volume"), (EMPTY, "False", "EndsWithPod"), (HOST, "Unknown", "OnOneNode")],
)
def test_the_condition_is_set_from_the_start_and_its_warning_is_sent_once(volume, status, reason):
    job = saving(volume)
    first = plan(job, Children(), NOW)
    said = next(one for one in first.status["conditions"] if one["type"] == "CheckpointsKept")
    assert (said["status"], said["reason"], said["observedGeneration"]) == (status, reason, 1)
    assert warnings(first) == ([] if status == "True" else [said["message"]])
    again = plan(builders.with_status(job, first.status or {}), Children(), builders.at(60))
    assert warnings(again) == []


@pytest.mark.parametrize(
    ("job", "defaults"), [(builders.job(), NO_DEFAULTS), (saving(EMPTY), LOCAL), (saving(HOST), LOCAL)]
)
def test_a_job_without_checkpoints_or_with_a_local_directory_has_no_warning(job: Job, defaults: Defaults):
    assert warnings(plan(job, Children(), NOW, defaults)) == []


REPORT = {"attempt": 0, "step": 44, "checkpoint": {"step": 40}}


def after_a_failure(job: Job, *tasks: str) -> Plan:
    """The plan when these tasks of a running job have failed, with a checkpoint at step 40."""
    says = {"chief-0": REPORT}  # when the chief's supervisor is gone, what it said last still stands here
    running = plan(job, Children(tuple(builders.all_pods(job).values()), says), NOW).status
    failed = builders.all_pods(job, **dict.fromkeys(tasks, builders.out_of_memory()))
    return plan(builders.with_status(job, running or {}), Children(tuple(failed.values()), says), builders.at(9))


@pytest.mark.parametrize(
    ("volume", "task", "left"),
    [
        (CLAIM, "chief-0", {"step": 40}),
        (EMPTY, "worker-0", {"step": 40}),
        (EMPTY, "chief-0", None),
        (HOST, "chief-0", {"step": 40}),
    ],
)
def test_a_restart_promises_no_step_that_nothing_holds(volume: dict[str, Any], task: str, left: dict[str, int] | None):
    made = after_a_failure(saving(volume), task)
    assert "Restarting" in [one.reason for one in made.events]
    assert made.status.get("checkpoint") == left


def promised(job: Job, report: dict[str, Any] | None = None, **internal: Any) -> list[str]:
    """Events over a worker that fails. The chief's pod is a second one, the first has saved step 40, and the second has
    reported this, if anything."""
    attempts = {"exceptions": {"chief-0": 1}}
    job = builders.with_status(job, {"checkpoint": {"step": 40}, "internal": {"attempts": attempts, **internal}})
    pods = builders.all_pods(job, worker_0=builders.out_of_memory()).values()
    says = {"chief-0": {"attempt": 1, **report}} if report else {}
    made = plan(job, Children(tuple(pods), says), builders.at(9))
    return [one.message for one in made.events if one.reason == "Restarting"]


FAILED = "worker-0 ran out of memory (OOMKilled); training restarts"
PROMISE = " from the checkpoint at step {} or a later one"


@pytest.mark.parametrize(
    ("job", "where"),
    [
        (builders.job(), "; where the program keeps its checkpoint at step 40 is not known"),
        (saving(HOST), "; the checkpoint at step 40 is on the node of the chief's earlier pod"),
        (saving(CLAIM), PROMISE.format(40)),
    ],
)
def test_a_new_pod_of_the_chief_need_not_have_what_its_earlier_one_has_saved(job: Job, where: str):
    assert promised(job) == [FAILED + where]
    assert promised(job, {"state": "waiting"}) == [FAILED + where]
    assert promised(job, {"step": 40, "restoredStep": 40, "checkpoint": {"step": 40}}) == [FAILED + PROMISE.format(40)]
    assert promised(job, chiefStart={"attempt": 1}) == [FAILED + PROMISE.format(40)]  # the operator begins anew
    assert promised(job, {"step": 60, "checkpoint": {"step": 60}}) == [FAILED + PROMISE.format(60)]


def test_a_report_of_a_replaced_pod_does_not_bring_its_checkpoint_back():
    job = saving(EMPTY)
    made = after_a_failure(job, "chief-0")
    job = builders.with_status(job, made.status or {})
    pods = tuple(builders.all_pods(job).values())  # the new chief runs, and has not answered yet
    after = plan(job, Children(pods, {"chief-0": REPORT}), builders.at(10))
    assert after.status is not None
    assert "checkpoint" not in after.status


SAVING = saving(CLAIM)
FREE = builders.job()
SAVED = {"attempt": 0, "incarnation": 0, "step": 44, "restoredStep": 0, "checkpoint": {"step": 40}}


def told(made: Plan) -> list[str]:
    return [f"{one.type} {one.reason}" for one in made.events if one.reason in ("Resumed", "StartedOver")]


@pytest.mark.parametrize("job", [SAVING, FREE])
def test_a_first_start_from_nothing_is_no_news(job: Job):
    after, made = builders.chief_says(job, {"attempt": 0, "incarnation": 0, "step": 0, "restoredStep": 0})
    assert told(made) == []
    assert "restored" not in after.status


def test_a_new_job_that_finds_a_checkpoint_says_so():
    _, made = builders.chief_says(SAVING, {**SAVED, "restoredStep": 40})
    assert told(made) == ["Normal Resumed"]


@pytest.mark.parametrize(
    ("again", "wanted", "checkpoint"),
    [
        ({"restoredStep": 40, "checkpoint": {"step": 40}}, "Normal Resumed", 40),
        ({"restoredStep": 40, "checkpoint": {"step": 60}}, "Normal Resumed", 60),
        ({"restoredStep": 20, "checkpoint": {"step": 20}}, "Warning Resumed", 20),
        ({"restoredStep": 0}, "Warning StartedOver", None),
    ],
)
def test_a_restored_step_has_one_event_and_is_the_newest_checkpoint(again, wanted, checkpoint):
    job, _ = builders.chief_says(SAVING, SAVED)
    report = {"attempt": 0, "incarnation": 1, "step": again["restoredStep"], **again}
    job, made = builders.chief_says(job, report, 1)  # sooner than progress alone is written
    assert told(made) == [wanted]
    assert job.status.get("checkpoint", {}).get("step") == checkpoint
    restored = {"step": again["restoredStep"], "time": "2026-11-21T10:00:01Z"}
    assert (job.status["restored"], job.status["internal"]["chiefStart"]) == (restored, {"incarnation": 1})
    job, made = builders.chief_says(job, {**report, "step": 70}, 30)
    assert told(made) == []
    assert job.status["restored"] == restored


def test_there_is_no_event_before_the_chief_reports_a_restored_step():
    job, _ = builders.chief_says(SAVING, SAVED)
    waiting = {"attempt": 0, "incarnation": 1, "step": 44, "checkpoint": {"step": 40}, "state": "waiting"}
    job, made = builders.chief_says(job, waiting, 1)
    assert told(made) == []
    assert job.status["checkpoint"] == {"step": 40}


@pytest.mark.parametrize("job", [SAVING, FREE])
def test_a_start_after_others_that_never_came_to_a_step_is_no_news(job: Job):
    """As of workers that there was no room for: the group that is made in their place loses nothing."""
    job, _ = builders.chief_says(job, {"attempt": 0, "incarnation": 0, "state": "waiting"})
    job, made = builders.chief_says(job, {"attempt": 0, "incarnation": 1, "step": 0, "restoredStep": 0}, 1)
    assert told(made) == []
    assert job.status["internal"]["chiefStart"] == {"incarnation": 1}


def test_a_run_that_ends_before_the_next_look_has_the_event_resumed_too():
    job, _ = builders.chief_says(SAVING, SAVED)
    pods = builders.all_pods(job)
    left = '{"attempt": 0, "incarnation": 1, "restoredStep": 40, "step": 80, "checkpoint": {"step": 80}}'
    pods["chief-0"]["status"] = builders.ended(0, message=left)
    made = plan(job, Children(tuple(pods.values()), {"chief-0": SAVED}), builders.at(9))
    assert [one.reason for one in made.events] == ["Resumed", "Succeeded"]


def test_a_start_that_the_operator_has_forgotten_is_no_news_again():
    """What was saved since is no loss."""
    job, _ = builders.chief_says(SAVING, {**SAVED, "restoredStep": 40})
    later = {**SAVED, "restoredStep": 40, "step": 95, "checkpoint": {"step": 90}}
    job, _ = builders.chief_says(job, later, 30)
    job, made = builders.chief_says(builders.forgotten(job), later, 60)
    assert (told(made), job.status["checkpoint"]) == ([], {"step": 90})
    _, made = builders.chief_says(job, {**later, "incarnation": 1, "restoredStep": 90}, 61)
    assert told(made) == ["Normal Resumed"]
