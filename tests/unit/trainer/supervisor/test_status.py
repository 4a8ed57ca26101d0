# SPDX-License-Identifier: Apache-2.0
"""What /status says, and what it does not let a training process say."""

import json
import os
from pathlib import Path

import pytest

from dtjob_trainer.contract.task import Task
from dtjob_trainer.rendezvous.records import Crashes
from dtjob_trainer.supervisor.status import LONGEST_EXCEPTION, TaskStatus, last_of_done, leave_last_words


def status_of(role: str, index: int, attempt: int) -> TaskStatus:
    return TaskStatus(Task("digits", "default", "uid", role, index, attempt))


def test_the_training_process_cannot_overwrite_who_we_are() -> None:
    status = status_of("worker", 1, 2)
    status.merge({"task": "chief-0", "pid": 1, "restartsInPlace": 99, "state": "training", "step": 4, "loss": 0.5})
    status.merge({"stepped": False})
    assert status.to_json() == {
        "task": "worker-1", "attempt": 2, "pid": os.getpid(), "state": "training", "incarnation": 0, "jobUid": "uid",
        "restartsInPlace": 0, "stepped": True, "step": 4, "loss": 0.5,
    }  # fmt: skip


def test_a_new_training_process_forgets_what_held_for_the_old_one_only() -> None:
    status = status_of("worker", 1, 0)
    status.started(0, 50)
    status.merge({"state": "training", "step": 4, "stepsPerSecond": 9.0, "restoredStep": 2, "checkpoint": {"step": 2}})
    status.ended("waiting")
    assert "trainingPid" not in status.to_json()
    status.restarts(1, "2026-11-21T10:00:00Z", "worker-0 was lost")
    status.started(1, 51)
    after = status.to_json()
    assert (after["state"], after["incarnation"], after["trainingPid"]) == ("waiting", 1, 51)
    assert (after["step"], after["checkpoint"]) == (4, {"step": 2})
    assert after["lastRestart"] == {"time": "2026-11-21T10:00:00Z", "cause": "worker-0 was lost"}
    assert not {"stepsPerSecond", "restoredStep"} & after.keys()


def test_the_time_that_was_spent_is_our_own_sum() -> None:
    status = status_of("chief", 0, 0)
    status.started(0, 50)
    status.merge({"restoredStep": 0})
    status.merge({"step": 10, "trainedSeconds": 6.0, "savedSeconds": 1.0, "spent": {"kept": 1e9}})
    status.ended("waiting")
    status.started(1, 51)
    status.merge({"restoredStep": 8})
    said = status.to_json()
    assert said["spent"] == {
        "from": 0, "keptSteps": 8, "kept": 4.0, "redoneSteps": 2, "redone": 1.0, "saving": 1.0,
    }  # fmt: skip
    assert not {"trainedSeconds", "savedSeconds"} & said.keys()


def test_the_supervisors_message_goes_first() -> None:
    status = status_of("worker", 1, 0)
    status.merge({"message": "theirs"})
    assert status.to_json()["message"] == "theirs"
    status.message = "ours"
    assert status.to_json()["message"] == "ours"


@pytest.mark.parametrize(
    ("mark", "last"),
    [
        ('{"uid": "a", "step": 4, "status": {"step": 4}}', {"step": 4}),
        (
            '{"uid": "a", "status": {"step": 4, "restoredStep": 2, "trainedSeconds": 6.0, "savedSeconds": 1}}',
            {"step": 4},
        ),
        ('{"uid": "a", "step": 4}', {}),
        ('{"uid": "b"}', None),
        ('{"uid":', None),
        ("[]", None),
        (None, None),
    ],
)
def test_a_mark_counts_for_its_own_job_only(tmp_path: Path, mark: str | None, last: dict[str, int] | None) -> None:
    if mark is not None:
        (tmp_path / "DONE").write_text(mark)
    assert last_of_done(str(tmp_path), "a") == last
    assert last_of_done("gs://bucket/digits", "a") is None, "TensorFlow reads it"


def test_the_last_words_are_one_json_object_where_they_are_asked_for(tmp_path: Path) -> None:
    leave_last_words({"task": "chief-0", "step": 4}, str(tmp_path / "log"))
    assert json.loads((tmp_path / "log").read_text()) == {"task": "chief-0", "step": 4}
    leave_last_words({"task": "chief-0"}, "")
    with pytest.raises(OSError, match="nowhere"):
        leave_last_words({}, str(tmp_path / "nowhere" / "log"))


@pytest.mark.parametrize(
    ("progress", "starting", "saves"),
    [
        ({"state": "waiting"}, True, False),
        ({"state": "starting"}, True, False),
        ({"state": "training"}, False, False),
        ({"state": "training", "writing": 7}, False, True),
        ({"state": "saving"}, False, True),
    ],
)
def test_a_process_that_saves_is_known(progress: dict[str, object], starting: bool, saves: bool) -> None:
    status = status_of("worker", 1, 0)
    status.merge(progress)
    assert (status.starting, status.saves) == (starting, saves)
    status.merge({"writing": None, "state": "training"})
    assert not status.saves


def test_last_words_that_the_kubelet_would_cut_leave_metrics_out(tmp_path: Path) -> None:
    metrics = {f"a-metric-of-a-long-name-{number}": 0.123456789 for number in range(200)}
    leave_last_words({"step": 4, "model": "m.keras", "metrics": metrics}, str(tmp_path / "log"))
    assert json.loads((tmp_path / "log").read_text()) == {"step": 4, "model": "m.keras"}
    leave_last_words({"step": 4, "metrics": {"a": 1}, "message": "x" * 9000}, str(tmp_path / "log"))
    assert json.loads((tmp_path / "log").read_text()) == {"step": 4}


def test_a_failure_has_its_exit_code_and_its_exception() -> None:
    status = status_of("chief", 0, 0)
    status.started(0, 50)
    assert status.of_failure(3) == {"exitCode": 3, "stepped": False}
    status.merge({"exception": {"type": "TimeoutError", "message": "x" * 1000, "transient": True}})
    told = status.of_failure(1)
    assert told == {"exitCode": 1, "stepped": False, "exception": told["exception"], "transient": True}
    assert str(told["exception"]).startswith("TimeoutError: xxx")
    assert len(str(told["exception"])) == LONGEST_EXCEPTION
    status.merge({"exception": {"type": "FitError", "message": "epochs", "permanent": True}})
    assert status.of_failure(1)["permanent"] is True
    status.merge({"step": 1, "exception": {"type": "AssertionError", "message": ""}})
    assert status.of_failure(1) == {"exitCode": 1, "stepped": True, "exception": "AssertionError"}
    status.started(1, 51)
    assert status.of_failure(139) == {"exitCode": 139, "stepped": True}


def test_a_process_has_trained_if_it_reported_a_step_beyond_the_restored_one() -> None:
    status = status_of("chief", 0, 0)
    status.started(0, 17)
    assert status.trained_from is None
    status.merge({"step": 100, "restoredStep": 100, "state": "training"})
    assert status.trained_from is None
    status.merge({"step": 101})
    assert status.trained_from == 100
    status.merge({"state": "saving"})
    assert status.trained_from is None
    status.started(1, 18)
    status.merge({"state": "training"})
    assert status.trained_from is None, "that step was another process's"


def test_the_status_has_crashes_only_after_the_first_one() -> None:
    status = status_of("chief", 0, 0)
    assert "crashes" not in status.to_json()
    status.crashes = lambda: Crashes(2, "worker-1", "SIGKILL", 40)
    assert status.to_json()["crashes"] == {"count": 2, "task": "worker-1", "signal": "SIGKILL", "step": 40}
    status.merge({"crashes": {"count": 9}})
    assert status.to_json()["crashes"]["count"] == 2
