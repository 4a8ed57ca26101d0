# SPDX-License-Identifier: Apache-2.0
"""When an incident begins and when it ends, through histories of whole plans: what is told and counted of the failures
after the first."""

from typing import Any

import pytest

from dtjob.objects import labels
from tests.unit.operator import builders
from tests.unit.operator.builders import at
from tests.unit.operator.plan.history import History
from tests.unit.operator.queued import CLAIM

LONG_WAITS = {"maxRestartsWithoutProgress": 3, "backoff": {"initialSeconds": 300, "maxSeconds": 300}}


def told(history: History, task: str) -> list[str]:
    """What users were told of this task's failures."""
    return [event.message for event in history.events if event.message.startswith(task)]


def supervised(strategy: str = "MultiWorkerMirrored", **more: Any) -> History:
    """A job with checkpoints whose supervisors tell of them, and that has saved at step 100."""
    history = History(builders.job(strategy, checkpoint=CLAIM, **more))
    history.reports["chief-0"] = said(restored=0, saved=100)
    history.look(at(1))
    return history


def said(restored: int, saved: int, incarnation: int = 0) -> dict[str, Any]:
    """What the chief's supervisor says of its training process."""
    return {
        "task": "chief-0",
        "attempt": 0,
        "incarnation": incarnation,
        "restoredStep": restored,
        "step": saved + 5,
        "state": "training",
        "checkpoint": {"step": saved, "time": "2026-11-21T10:00:00Z"},
    }


def fails(history: History, task: str, seconds: float, code: int = 1) -> None:
    """The task's newest pod fails, and the operator looks then and in 3 s."""
    history.ends(task, builders.ended(code, at(seconds)))
    history.look(at(seconds))
    history.look(at(seconds + 3))
    history.end_what_is_deleted()
    history.look(at(seconds + 4))


def test_a_failure_after_training_has_resumed_and_saved_has_an_event_and_is_counted() -> None:
    history = supervised()
    fails(history, "worker-0", 10)
    assert history.look(at(15))["phase"] == "Running"
    history.reports["chief-0"] = said(restored=100, saved=120, incarnation=1)
    history.look(at(20))
    fails(history, "worker-1", 25)
    assert (history.total, len(told(history, "worker-1 failed"))) == (2, 1)
    assert history.job.status["lastFailure"]["task"] == "worker-1"


def without_checkpoints(**policy: Any) -> History:
    """A ParameterServer job of an image that knows nothing of dtjob, whose workers train by themselves."""
    job = builders.job(
        "ParameterServer", chief=False, program=False, workers=3, ps=2, failurePolicy={**LONG_WAITS, **policy}
    )
    return History(job)


def comes_back(history: History, seconds: float) -> None:
    """The wait is over, and all pods run."""
    history.end_what_is_deleted()
    history.look(at(seconds))
    assert history.look(at(seconds + 1))["phase"] == "Running"


def test_survivors_that_fail_in_the_wait_before_the_next_start_are_of_the_same_incident() -> None:
    history = without_checkpoints()
    fails(history, "ps-0", 10)
    fails(history, "worker-1", 20)
    comes_back(history, 30)
    history.look(at(120))
    fails(history, "ps-1", 120)
    for seconds, task in ((170, "worker-1"), (250, "worker-2"), (400, "ps-0")):
        fails(history, task, seconds)
    comes_back(history, 425)
    incident = history.job.status["internal"]["incident"]
    assert (history.total, history.charged, incident["inARow"]) == (2, 2, 2)
    assert history.job.status["restarts"]["causes"] == {"Error": 2}
    assert told(history, "worker-2 failed") == [
        "worker-2 failed (exit code 1); it is replaced, and not counted apart from the failure of ps-1"
    ]


def test_a_disruption_long_after_an_error_does_not_give_its_charge_back() -> None:
    history = without_checkpoints()
    fails(history, "ps-0", 10)
    comes_back(history, 30)
    history.look(at(120))
    fails(history, "ps-1", 120)
    history.ends("worker-2", builders.disrupted(when=at(200)))
    history.look(at(200))
    history.look(at(203))
    assert (history.charged, history.job.status["restarts"]["causes"]) == (2, {"Error": 2})


def test_the_end_of_an_incident_is_no_reason_to_write_the_status() -> None:
    history = without_checkpoints()
    fails(history, "ps-0", 10)
    comes_back(history, 20)
    assert history.plan(at(100)).status is None


@pytest.mark.parametrize("joined", [False, True])
def test_a_permanent_error_fails_the_job_though_it_follows_another_failure(joined: bool) -> None:
    history = supervised()
    if joined:
        fails(history, "worker-0", 10)
    history.ends("worker-1", builders.failed(1, "ValueError: no", at(20), permanent=True))
    history.look(at(20))
    history.look(at(23))
    assert (history.job.status["phase"], history.job.status["reason"]) == ("Failed", "ProgramFailed")
    assert labels.task_id(history.pods["digits-worker-1-0"]) == history.job.status["lastFailure"]["task"]
