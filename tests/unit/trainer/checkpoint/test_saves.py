# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.saves: which checkpoint a run goes on from where some cannot be read."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import saves as saves_module
from dtjob_trainer.checkpoint import writer
from dtjob_trainer.checkpoint.directory import DATA_SUFFIX
from dtjob_trainer.checkpoint.owner import OWNER
from dtjob_trainer.checkpoint.saves import Saves
from dtjob_trainer.checkpoint.state import CallbackState, FitState, RunState
from dtjob_trainer.contract.settings import Checkpoint
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import CheckpointError
from dtjob_trainer.models.kept_variables import State
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.collective import Group


def newest(directory: Path, *damaged: int, steps: tuple[int, ...] = (5, 10, 15)) -> Any:
    """The state of the checkpoint that a run goes on from, of these steps, some of which cannot be read."""
    for step in steps:
        writer.write(str(directory), step, {"v": tf.constant(1.0)}, f'{{"step": {step}}}'.encode(), max_to_keep=3)
    for step in damaged:
        (directory / f"ckpt-{step}{DATA_SUFFIX}").write_bytes(b"")
    settings = Checkpoint(str(directory))
    task = Task("test", "default", "uid", "chief", 0, checkpoint=settings)
    saves: Any = SimpleNamespace(_here=SimpleNamespace(task=task, log=lambda *_, **__: None))
    found = Saves._newest(saves, writer.Writer(task, settings, lambda **_: None, print))
    return found and found.state


def saves_of(role: str, checkpoint: Checkpoint | None) -> Saves:
    """Those of a task of two, which writes nothing."""
    task = Task("test", "default", "uid", role, 1, checkpoint=checkpoint)  # type: ignore[arg-type]
    here: Any = SimpleNamespace(task=task, checkpoint=checkpoint, is_chief=False)
    group: Any = SimpleNamespace(tasks=2)
    return Saves(here, group, SimpleNamespace())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("checkpoint", "due", "seconds"),
    [
        (Checkpoint("/c"), [], 300),
        (Checkpoint("/c", every_steps=4), [4, 8], 300),
        (Checkpoint("/c", every_steps=4, every_seconds=60), [4, 8], 60),
        (Checkpoint("/c", every_steps=4, every_seconds=0), [4, 8], None),
        (None, [], None),
    ],
)
def test_steps_and_the_clock_ask_for_saves(checkpoint: Checkpoint | None, due: list[int], seconds: int | None) -> None:
    saves = saves_of("worker", checkpoint)
    assert [step for step in range(1, 10) if saves.due(step)] == due
    assert (saves.schedule.every_seconds or None) == seconds


@pytest.mark.parametrize(
    ("checkpoint", "due"),
    [
        (Checkpoint("/c", every_epochs=1), [1, 2, 3, 4, 5, 6]),
        (Checkpoint("/c", every_epochs=3), [3, 6]),
        (Checkpoint("/c", every_epochs=0), []),
        (Checkpoint("/c"), [2, 4]),
        (None, []),
    ],
)
def test_epochs_ask_for_saves_by_their_number_or_by_the_chiefs_clock(
    checkpoint: Checkpoint | None, due: list[int]
) -> None:
    saves = saves_of("worker", checkpoint)
    assert [ended for ended in range(1, 7) if saves.due_after_epoch(ended, by_default=ended in (2, 4))] == due


def test_the_chief_alone_saves_an_epoch_by_default_once_the_last_save_is_old_and_written() -> None:
    chief, worker = saves_of("chief", Checkpoint("/c")), saves_of("worker", Checkpoint("/c"))
    chief._writer = SimpleNamespace(is_writing=False)  # type: ignore[assignment]
    assert [saves.due_by_default(seconds) for saves in (chief, worker) for seconds in (29.9, 30.0)] == [
        *(False, True),
        *(False, False),
    ]
    chief._writer = SimpleNamespace(is_writing=True)  # type: ignore[assignment]
    assert not chief.due_by_default(90.0)


@pytest.mark.parametrize(
    ("checkpoint", "alone"),
    [
        (Checkpoint("/c", every_epochs=1), True),
        (Checkpoint("/c", every_epochs=1, every_seconds=0), True),
        (Checkpoint("/c", every_epochs=1, every_steps=100), False),
        (Checkpoint("/c", every_epochs=1, every_seconds=30), False),
        (Checkpoint("/c", every_epochs=0), False),
        (Checkpoint("/c"), False),
        (None, False),
    ],
)
def test_a_job_may_count_on_epochs_alone(checkpoint: Checkpoint | None, alone: bool) -> None:
    assert saves_of("worker", checkpoint).epochs_alone is alone


@pytest.mark.parametrize(("long", "told"), [(0.0, [4]), (60.0, [])])
def test_a_long_wait_for_the_checkpoint_before_is_told_once(
    monkeypatch: pytest.MonkeyPatch, long: float, told: list[int]
) -> None:
    monkeypatch.setattr(saves_module, "LONG_SECONDS", long)
    logged: list[int] = []
    settings = Checkpoint("/c", every_steps=4)
    task = Task("test", "default", "uid", "worker", 1, checkpoint=settings)
    log = lambda message, *, level, step: logged.append(step)  # noqa: E731
    here: Any = SimpleNamespace(task=task, checkpoint=settings, is_chief=False, log=log)
    saves: Any = Saves(here, SimpleNamespace(tasks=1), SimpleNamespace(capture=dict))  # type: ignore[arg-type]
    saves._writer = SimpleNamespace(settle=lambda: None, write=lambda *_: None)
    for step in (4, 8):
        saves.write(RunState(FitState(), step), FitState)
    assert logged == told


def test_unreadable_checkpoints_are_moved_aside_once_an_older_one_was_read(tmp_path: Path) -> None:
    assert newest(tmp_path, 10, 15) == {"step": 5}
    assert len(list(tmp_path.glob("damaged-ckpt-1*"))) == 4


def test_a_run_without_a_readable_checkpoint_fails_and_keeps_its_files(tmp_path: Path) -> None:
    """All of them at once: it is the reader, as of a mount that reads too little, and the files stay."""
    with pytest.raises(CheckpointError, match=r"none of its 3 checkpoints can be read \(ckpt-15: .*move them away"):
        newest(tmp_path, 5, 10, 15)
    assert not list(tmp_path.glob("damaged-*"))


def test_a_single_unreadable_checkpoint_is_moved_aside(tmp_path: Path) -> None:
    assert newest(tmp_path, 5, steps=(5,)) is None
    assert len(list(tmp_path.glob("damaged-ckpt-5*"))) == 2


class Chiefs:
    """The group of a chief, which notes what it tells, or of a worker, which is told that."""

    tasks, anew = 2, ""

    def __init__(self, index: int, told: list[Any]) -> None:
        self.index, self._told = index, told

    def sum(self, vector: Any) -> Any:
        return self.broadcast(vector if self.index == 0 else None, 2)

    def broadcast(self, data: Any, size: int) -> Any:
        if self.index == 0:
            self._told.append(data)
        else:
            data = self._told.pop(0)
        assert len(data) == size
        return data


def test_every_task_gets_the_arrays_of_the_chiefs_state(tmp_path: Path) -> None:
    sums, told = np.arange(1000.0), []  # type: ignore[var-annotated]
    state: Any = SimpleNamespace(capture=lambda: {"v": tf.constant(1.0)}, restore=lambda _: True)
    found = []
    for index, role in enumerate(("chief", "worker")):
        task = Task("test", "default", "uid", role, 0, checkpoint=Checkpoint(str(tmp_path)))  # type: ignore[arg-type]
        group: Any = Chiefs(index, told)
        saves = Saves(Runtime(task), group, state)
        if saves.writes:
            saves.write(RunState(FitState(), 5), lambda: FitState(callbacks=[CallbackState("Sums", [sums, 0.5])]))
            saves.wait()
        restored = saves.restore(FitState)
        assert restored is not None
        found.append(restored.state.loop.callbacks[0].state)
    assert not told
    for array, number in found:
        assert (array.tolist(), number) == (sums.tolist(), 0.5)
        array += 1


def test_no_other_job_can_take_the_directory_between_two_calls_of_fit(tmp_path: Path) -> None:
    here = Runtime(Task("test", "default", "uid", "chief", 0, checkpoint=Checkpoint(str(tmp_path))))
    group = Group(tf.distribute.get_strategy(), None)
    for _ in range(2):
        saves = Saves(here, group, State(group, {}, {}, []))
        saves.restore(FitState)
        assert (tmp_path / OWNER).exists()
        here.begin_stage()
        here.training = False  # the call has ended
    Saves(here, group, State(group, {}, {}, []))
    assert (tmp_path / OWNER).exists(), "the third call has not restored yet"
    here.shutdown.release()
    assert not (tmp_path / OWNER).exists()
