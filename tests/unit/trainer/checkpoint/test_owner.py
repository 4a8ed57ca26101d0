# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.owner: whose mark is alive, and what becomes of a mark that another job overwrites."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from dtjob_trainer.checkpoint import owner
from dtjob_trainer.checkpoint.owner import OWNER, SILENT_SECONDS, Owner, Refuse, Take, Wait, decide
from dtjob_trainer.contract.settings import Checkpoint
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import CheckpointInUseError

PATIENCE = 90.0


def mark(heartbeat: str, uid: str = "first") -> dict[str, str]:
    return {"uid": uid, "namespace": "team", "name": "digits", "heartbeat": heartbeat}


def looks(*marks: tuple[float, dict[str, Any] | None]) -> Take | Refuse | Wait:
    """What the job `second` decides at last, after it has looked at these moments."""
    decided: Take | Refuse | Wait | None = None
    for now, found in marks:
        assert decided is None or isinstance(decided, Wait), "it has decided before"
        decided = decide(found, "second", decided, now, PATIENCE)
    assert decided is not None
    return decided


@pytest.mark.parametrize("found", [None, {}, {"heartbeat": "noon"}, mark("noon", uid="second")])
def test_a_directory_without_an_owner_or_of_this_job_is_taken_at_the_first_look(found: dict[str, Any] | None) -> None:
    assert looks((0.0, found)) == Take()


def test_a_mark_that_goes_is_no_longer_waited_for() -> None:
    assert looks((0.0, mark("noon")), (1.0, None)) == Take()


def test_a_heartbeat_that_does_not_change_is_dead_after_a_while() -> None:
    old = mark("noon")
    assert isinstance(looks((0.0, old), (SILENT_SECONDS - 1, old)), Wait)
    assert looks((0.0, old), (SILENT_SECONDS, old)) == Take(old)


@pytest.mark.parametrize("heartbeats", [["1999-01-01", "1999-01-02"], ["2999-01-02", "2999-01-01"]])
def test_no_clock_is_compared_with_a_heartbeat(heartbeats: list[str]) -> None:
    before, after = map(mark, heartbeats)
    assert isinstance(looks((0.0, before), (SILENT_SECONDS - 1, after), (SILENT_SECONDS + 1, after)), Wait)
    assert looks((0.0, before), (1.0, after), (SILENT_SECONDS + 1, after)) == Take(after)


def test_an_owner_that_is_alive_is_waited_for_as_it_may_be_about_to_end() -> None:
    beats = [(float(now), mark(str(now))) for now in range(0, int(PATIENCE) + 1, 10)]
    assert isinstance(looks(*beats[:-1]), Wait)
    assert looks(*beats) == Refuse(mark(str(int(PATIENCE))))
    assert looks(*beats[:-1], (PATIENCE - 1, None)) == Take()


def test_a_third_job_that_takes_the_directory_meanwhile_is_alive() -> None:
    third = mark("noon", uid="third")
    assert isinstance(looks((0.0, mark("noon")), (SILENT_SECONDS - 1, third), (SILENT_SECONDS + 1, third)), Wait)


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "HEARTBEAT_SECONDS", 0.01)


def owner_of(directory: Path, uid: str = "second") -> Owner:
    task = Task("other", "team", uid, "chief", 0, checkpoint=Checkpoint(str(directory)))
    return Owner(task, lambda **_: None, lambda *_, **__: None)


def overwritten(directory: Path, held: Owner) -> None:
    """Have another job overwrite the mark, and wait until the first has seen that."""
    renewing = held._thread
    assert renewing is not None
    while renewing.is_alive():  # a renewal at the same moment may win
        (directory / OWNER).write_text(json.dumps(mark("noon")))
        renewing.join(0.05)


@pytest.mark.usefixtures("fast")
def test_a_mark_is_renewed_until_it_is_released(tmp_path: Path) -> None:
    held = owner_of(tmp_path)
    held.wait()
    held.take()
    seen = json.loads((tmp_path / OWNER).read_text())
    assert {**seen, "heartbeat": ""} == {"uid": "second", "namespace": "team", "name": "other", "heartbeat": ""}
    ticks = threading.Event()
    while json.loads((tmp_path / OWNER).read_text()) == seen:
        ticks.wait(0.01)
    held.check()
    held.release()
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("fast")
def test_a_mark_that_another_job_has_overwritten_stays_and_is_an_error(tmp_path: Path) -> None:
    held = owner_of(tmp_path)
    held.take()
    overwritten(tmp_path, held)
    with pytest.raises(CheckpointInUseError, match=r"in use by job team/digits \(uid first\): both began at the same"):
        held.check()
    held.release()
    assert json.loads((tmp_path / OWNER).read_text())["uid"] == "first"


@pytest.mark.usefixtures("fast")
def test_storage_that_is_away_for_a_while_does_not_end_the_renewal(tmp_path: Path) -> None:
    directory, away = tmp_path / "there", tmp_path / "away"
    directory.mkdir()
    held = owner_of(directory)
    held.take()
    directory.rename(away)
    while (away / OWNER).exists() and not directory.exists():
        away.rename(directory)
    before = json.loads((directory / OWNER).read_text())["heartbeat"]
    ticks = threading.Event()
    while json.loads((directory / OWNER).read_text())["heartbeat"] == before:
        ticks.wait(0.01)
    held.release()


def test_the_release_of_a_mark_that_was_not_taken_leaves_the_file(tmp_path: Path) -> None:
    held = owner_of(tmp_path)
    (tmp_path / OWNER).write_text(json.dumps(mark("noon")))
    held.release()
    assert (tmp_path / OWNER).exists()
