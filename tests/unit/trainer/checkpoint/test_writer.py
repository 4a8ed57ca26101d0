# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.writer: saves that fail, once or for good."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import directory, saves, writer
from dtjob_trainer.checkpoint.directory import steps_in
from dtjob_trainer.checkpoint.owner import OWNER
from dtjob_trainer.checkpoint.state import RunState, TrainState
from dtjob_trainer.checkpoint.writer import Writer
from dtjob_trainer.contract.settings import Checkpoint, WriteMode
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import CheckpointError
from dtjob_trainer.models.kept_variables import State
from dtjob_trainer.process.failure import may_pass
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.collective import Group
from tests.unit.trainer.raised import raise_as_tensorflow

MANY = 100
AWAY = tf.errors.UnknownError(None, None, "ckpt_temp; Input/output error")


class Storage:
    """A directory that is away for some writes, and who writes to it."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, write_mode: WriteMode) -> None:
        self.fails = 0
        """So many writes to come."""
        self.directory = str(directory)
        self.log: list[tuple[int, str]] = []
        self.status: dict[str, Any] = {}
        self.told = threading.Event()
        checkpoint = Checkpoint(self.directory, write_mode=write_mode)
        self.task = Task("test", "default", "uid", "chief", 0, checkpoint=checkpoint)
        self.writer = Writer(self.task, checkpoint, lambda **keys: self.status.update(keys), self._say)
        self._write = writer.write
        monkeypatch.setattr(writer, "write", self._write_or_fail)
        monkeypatch.setattr(writer, "RETRY_SECONDS", 0.0, raising=False)

    def save(self, step: int) -> None:
        self.writer.write(step, {"v": tf.constant(1.0)}, {})

    def _say(self, message: str, *, level: str, step: int) -> None:
        assert level == "warning"
        self.log.append((step, message))
        self.told.set()

    def _write_or_fail(self, *arguments: Any) -> None:
        self.fails -= 1
        if self.fails >= 0:
            Path(self.directory, f"ckpt-{arguments[1]}_temp").mkdir(exist_ok=True)
            raise AWAY
        self._write(*arguments)


@pytest.fixture(params=["Async", "Sync"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    return Storage(tmp_path, monkeypatch, request.param)


def test_a_write_that_fails_once_is_reported_at_once_and_tried_again(storage: Storage, tmp_path: Path) -> None:
    storage.fails = 1
    storage.save(5)
    assert storage.told.wait(60), "before anybody waits for it"
    storage.writer.wait()
    assert steps_in(storage.directory) == [5]
    ((step, message),) = storage.log
    assert step == 5
    assert message.startswith(f"checkpoint.storage {tmp_path}: the checkpoint could not be written, it is tried once")
    assert message.endswith("Input/output error")
    assert (storage.status["checkpoint"]["step"], storage.status["writing"]) == (5, None)


def test_a_kill_in_the_second_try_leaves_what_the_first_has_written(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `maxToKeep: 1` that may be the only checkpoint: a save of the same step has replaced the one before."""
    storage.save(5)
    storage.writer.wait()
    name_finally, write = writer.name_finally, writer.parts.write

    def fails_once(*_: object) -> None:
        monkeypatch.setattr(writer, "name_finally", name_finally)
        raise AWAY

    def killed(*arguments: Any, **keys: Any) -> None:
        if writer.name_finally is name_finally:
            raise KeyboardInterrupt
        write(*arguments, **keys)

    monkeypatch.setattr(writer, "name_finally", fails_once)
    monkeypatch.setattr(writer.parts, "write", killed)
    storage.save(5)
    assert storage.writer.settle() == 5
    directory.clear_half_written(storage.directory)
    assert steps_in(storage.directory) == [5]


def test_a_failed_save_does_not_stop_the_next_save(storage: Storage, tmp_path: Path) -> None:
    """As the one before a task leaves."""
    storage.fails = 2
    storage.save(5)
    assert storage.writer.settle() == 5
    assert "checkpoint" not in storage.status
    for step in (10, 15):
        storage.save(step)
        storage.writer.wait()
    assert steps_in(storage.directory) == [10, 15]
    assert not list(tmp_path.glob("*_temp")), "what it left would fill the disk"
    assert [step for step, _ in storage.log] == [5, 5]


def test_two_failed_saves_in_a_row_end_training(storage: Storage) -> None:
    storage.fails = MANY
    storage.save(5)
    with pytest.raises(CheckpointError, match="Input/output error"):
        storage.writer.wait()  # a run whose last save failed has not ended well
    with pytest.raises(CheckpointError, match=r"checkpoint.storage .*Input/output error") as raised:
        storage.save(10)
    assert raised.value.__cause__ is AWAY


UNWRITABLE = Path("/sys/kernel")
"""Where nobody makes a file, root neither."""


@pytest.mark.skipif(not UNWRITABLE.is_dir(), reason=f"{UNWRITABLE} is not mounted")
def test_a_directory_that_cannot_be_written_to_is_an_error_before_the_first_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage = Storage(UNWRITABLE, monkeypatch, write_mode="Async")
    wanted = (
        rf"checkpoint.storage {UNWRITABLE} cannot be written to: .*; let user {os.geteuid()} write there \(.*fsGroup"
    )
    with pytest.raises(CheckpointError, match=wanted):
        storage.writer.prepare()


def test_files_of_a_killed_save_are_removed_before_anything_is_written(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ckpt-7_temp").mkdir()
    real = directory.gfile.remove

    def full(path: str) -> None:
        if (tmp_path / "ckpt-7_temp").exists():
            raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")
        real(path)

    monkeypatch.setattr(directory.gfile, "remove", full)
    assert storage.writer.prepare() == []


def test_the_error_of_a_full_disk_says_that_it_is_full(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:

    def full(path: str) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, f"{path}; No space left on device")

    monkeypatch.setattr(directory.gfile, "remove", full)
    with pytest.raises(CheckpointError, match="No space left on device; make room there, or choose another"):
        storage.writer.prepare()


def test_a_directory_that_is_away_is_not_called_unwritable(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def away(path: str) -> None:
        raise_as_tensorflow(tf.errors.UnavailableError(None, None, path))

    with monkeypatch.context() as patch:
        patch.setattr(directory.gfile, "remove", away)
        with pytest.raises(CheckpointError, match="cannot be written to") as told:
            storage.writer.prepare()
    assert may_pass(told.value)
    assert "fsGroup" not in str(told.value)
    assert storage.writer.prepare() == []
    assert [path.name for path in tmp_path.iterdir()] == [OWNER], "what tried it is removed again"


def test_no_checkpoint_names_one_that_was_never_written(storage: Storage) -> None:
    """An evaluator would miss it."""
    group, here = Group(tf.distribute.get_strategy(), None), Runtime(storage.task)
    run = saves.Saves(here, group, State(group, {}, {}, []))
    for step, fails in ((5, 0), (10, 2), (15, 0)):
        storage.fails = fails
        run.write(RunState(TrainState(), step), TrainState)
        run._writer.settle()  # type: ignore[union-attr]
    restored = run.restore(TrainState)
    assert restored is not None
    assert restored.state.earlier == [5]


def test_a_lost_server_is_no_fault_of_the_storage(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error is raised itself, so that the chief starts again. A write is not tried once more."""
    lost = tf.errors.UnavailableError(None, None, "Socket closed, from remote target /job:ps/replica:0/task:1")
    monkeypatch.setattr(writer, "write", lambda *_: raise_as_tensorflow(lost))

    def save_and_wait() -> None:
        storage.save(5)
        storage.writer.wait()

    with pytest.raises(tf.errors.UnavailableError):
        save_and_wait()
    with pytest.raises(tf.errors.UnavailableError):
        storage.save(6)
    assert len(storage.log) == 1
