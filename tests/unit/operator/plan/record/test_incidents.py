# SPDX-License-Identifier: Apache-2.0
"""status.incidents: one entry for each restart, with the steps and the seconds that it cost."""

from typing import Any

from dtjob.api.status.progress import Progress
from dtjob.api.status.restarts import MOST_INCIDENTS, PastIncident
from dtjob.api.status.status import Status
from dtjob.plan.record.incidents import add_incident, begun, correct_incident, note_recovery, note_resumed
from tests.unit.operator import builders
from tests.unit.operator.builders import at
from tests.unit.operator.plan.history import History
from tests.unit.operator.queued import CLAIM


def trained(strategy: str = "MultiWorkerMirrored", **fields: Any) -> History:
    """A job with checkpoints that is at step 105 and has saved at step 100."""
    history = History(builders.job(strategy, checkpoint=CLAIM, **fields))
    says(history, step=105, restored=0)
    history.look(at(1))
    return history


def says(history: History, step: int, restored: int, incarnation: int = 0, attempt: int = 0, **more: Any) -> None:
    """What the chief's supervisor says of its training process."""
    saved = {"step": max(100, restored), "time": "2026-11-21T10:00:00Z"}
    said = {"task": "chief-0", "attempt": attempt, "incarnation": incarnation, "state": "training", "step": step}
    history.chief_says({**said, "restoredStep": restored, "checkpoint": saved, **more})


def story(history: History) -> list[dict[str, Any]]:
    """The incidents, without their times."""
    found = history.job.status.get("incidents", [])
    return [{name: value for name, value in one.items() if name != "time"} for one in found]


def fails(history: History, task: str, seconds: float, status: dict[str, Any] | None = None) -> None:
    """The task's newest pod ends, the operator replaces it, and all run."""
    history.ends(task, status or builders.ended(1, at(seconds)))
    history.look(at(seconds))
    history.look(at(seconds + 3))
    history.end_what_is_deleted()
    history.look(at(seconds + 4))


def test_a_restart_is_one_incident_from_its_failure_until_training_has_passed_the_step_it_had_reached() -> None:
    history = trained()
    fails(history, "worker-1", 10, builders.ended(137, at(10)))
    begun = {"number": 1, "task": "worker-1", "reason": "Signal", "message": "was killed (SIGKILL)", "fromStep": 105}
    assert story(history) == [begun]
    says(history, step=100, restored=100, incarnation=1)
    history.look(at(20))
    assert story(history) == [{**begun, "toStep": 100}]
    says(history, step=105, restored=100, incarnation=1)
    history.look(at(25))
    assert story(history) == [{**begun, "toStep": 100}]
    says(history, step=106, restored=100, incarnation=1)
    history.look(at(30))
    assert story(history) == [{**begun, "toStep": 100, "secondsLost": 20}]


def test_more_failures_of_an_incident_are_the_same_entry_and_a_stronger_cause_corrects_it() -> None:
    history = trained()
    fails(history, "worker-1", 10)
    history.ends("worker-0", builders.evicted())
    history.look(at(15))
    (one,) = story(history)
    assert (one["number"], one["task"], one["reason"]) == (1, "worker-0", "Disruption")
    assert one["message"] == "was disrupted (Evicted)"


def test_an_incident_that_had_recovered_is_open_again_if_more_of_it_fails() -> None:
    history = trained("ParameterServer", ps=2)
    fails(history, "worker-1", 10)
    assert [one["secondsLost"] for one in story(history)] == [0]
    fails(history, "ps-0", 20)
    (one,) = story(history)
    assert one.keys().isdisjoint({"toStep", "secondsLost"})
    says(history, step=106, restored=100, incarnation=1)
    history.look(at(40))
    assert [(one["toStep"], one["secondsLost"]) for one in story(history)] == [(100, 30)]


def test_the_step_is_that_of_the_failed_process_where_its_supervisor_tells_it() -> None:
    history = trained()
    fails(history, "chief-0", 10, builders.failed(exception="KeyError: 'label'", when=at(10), stepped=True, step=108))
    (one,) = story(history)
    assert (one["reason"], one["fromStep"]) == ("Error", 108)
    assert "KeyError: 'label'" in one["message"]


def test_a_crash_in_place_is_an_incident_too() -> None:
    history = trained()
    crash = {"count": 1, "task": "worker-1", "signal": "SIGSEGV", "step": 118}
    restart = {"time": "2026-11-21T10:00:08Z", "cause": "worker-1 was lost"}
    says(history, step=118, restored=100, incarnation=1, crashes=crash, lastRestart=restart)
    history.look(at(12))
    (one,) = history.job.status["incidents"]
    assert one["time"] == "2026-11-21T10:00:08Z"
    assert (one["task"], one["reason"], one["fromStep"], one["toStep"]) == ("worker-1", "Signal", 118, 100)
    says(history, step=119, restored=100, incarnation=1, crashes=crash, lastRestart=restart)
    history.look(at(20))
    assert [one["secondsLost"] for one in story(history)] == [12]


def test_a_task_that_training_does_not_wait_for_costs_no_time() -> None:
    history = trained("ParameterServer", ps=2)
    fails(history, "worker-1", 10)
    (one,) = story(history)
    assert (one["fromStep"], one["toStep"], one["secondsLost"]) == (105, 105, 0)
    crash = {"count": 1, "task": "worker-0", "signal": "SIGSEGV"}
    says(history, step=200, restored=0, crashes=crash)
    history.look(at(30))
    assert [one.get("secondsLost") for one in story(history)] == [0, 0]


def test_an_image_that_reports_no_steps_has_lost_the_time_until_all_tasks_run_again() -> None:
    history = History(builders.job(program=False))
    fails(history, "worker-1", 10)
    history.look(at(20))
    (one,) = story(history)
    assert one.keys().isdisjoint({"fromStep", "toStep"})
    assert one["secondsLost"] == 7


def test_a_restart_over_the_next_failure_ends_the_incident_before_it() -> None:
    history = trained()
    fails(history, "worker-1", 10)
    says(history, step=102, restored=100, incarnation=1)
    history.look(at(60))
    fails(history, "worker-0", 110)
    first, second = story(history)
    assert (first["secondsLost"], second["number"], second["fromStep"]) == (100, 2, 102)
    assert "secondsLost" not in second


def test_suspended_time_is_not_lost() -> None:
    history = trained()
    fails(history, "worker-1", 10)
    history.job = builders.suspending(history.job)
    history.look(at(30))
    history.look(at(3600))
    assert [one["secondsLost"] for one in story(history)] == [20]


def test_the_failure_that_ends_the_job_is_the_last_incident() -> None:
    history = trained(failurePolicy={"maxRestartsWithoutProgress": 0})
    fails(history, "chief-0", 10, builders.failed(exception="KeyError: 'label'", when=at(10), stepped=True, step=108))
    history.look(at(80))
    assert history.job.status["phase"] == "Failed"
    (one,) = story(history)
    assert (one["number"], one["fromStep"]) == (1, 108)
    assert history.job.status["restarts"]["total"] == 0


def interrupted(count: int, message: str = "was killed") -> Status:
    status = Status()
    for number in range(1, count + 1):
        status = add_incident(status, begun(number, at(number), "worker-1", "Error", message, 10), at(number))
    return status


def test_a_status_keeps_the_newest_incidents_and_short_messages() -> None:
    kept = interrupted(50, "w" * 5000).incidents
    assert [one.number for one in kept] == list(range(41, 51))
    assert {len(one.message) for one in kept} == {200}
    assert len(kept) == MOST_INCIDENTS


def test_a_cause_that_explains_several_restarts_corrects_as_many() -> None:
    lost = begun(3, at(9), "worker-0", "Disruption", "was lost with its node", None)
    corrected = correct_incident(interrupted(4), lost, was="Error", restarts=2)
    assert [one.reason for one in corrected.incidents] == ["Error", "Disruption", "Disruption", "Error"]


def test_a_restored_step_later_than_the_known_one_was_reached() -> None:
    resumed = note_resumed(interrupted(1), 12).incidents[-1]
    assert (resumed.from_step, resumed.to_step) == (12, 12)


def test_a_clock_that_was_set_back_takes_no_time() -> None:
    before = Status(incidents=(PastIncident(number=1, time=at(100), task="worker-1", reason="Error", to_step=0),))
    passed = before.but(progress=Progress(step=3))
    assert note_recovery(passed, at(0)).incidents[0].seconds_lost == 0
