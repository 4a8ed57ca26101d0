# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.loops.loop: where a run goes on, and that it ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import writer
from dtjob_trainer.checkpoint.directory import steps_in
from dtjob_trainer.contract import exit_codes
from dtjob_trainer.contract.settings import Checkpoint
from dtjob_trainer.contract.task import Task
from dtjob_trainer.data.batches import Batch, Source
from dtjob_trainer.loops import train
from dtjob_trainer.loops.loop import TrainLoop
from dtjob_trainer.models.trackables import Trackables
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.collective import Group


class FourBatches(Source):
    """Data of which no test here needs more."""

    steps = None
    may_be_empty, exact, argument = False, True, "data"

    def epoch(self, number: int, first_step: int) -> Iterator[Batch]:
        yield from (Batch((step,), 1, 1) for step in range(4))
        raise AssertionError("it goes on after its last step")

    def input_spec(self) -> tuple[Any, ...]:
        raise NotImplementedError


class Counting:
    """An engine that counts its steps in `value`."""

    def __init__(self, group: Group, value: tf.Variable) -> None:
        self.group, self._value = group, value

    def run(self, phase: str, source: Source, work: Any) -> int:
        self._value.assign_add(1.0)
        return 1

    def wait(self) -> None:
        """As Engine."""

    def outstanding(self) -> int:
        return 0

    def updates(self) -> int:
        return 0

    overlaps = False

    def busy(self, source: Source, step: int) -> float:
        return 0.0

    def values(self) -> dict[str, float]:
        return {"loss": 1.0 / float(self._value)}


def loop_of(here: Runtime, total_steps: int, value: tf.Variable, engine: type = Counting) -> TrainLoop:
    group = Group(tf.distribute.get_strategy(), here.task)
    epochs = train.passes(FourBatches(), group, here)
    return TrainLoop(here, engine(group, value), Trackables({"value": value}, group), epochs, total_steps, [])


def trained(directory: Path, total_steps: int, **when: int | None) -> tuple[dict[str, float], float, dict[str, Any]]:
    """What a run of so many steps gave, its variable, and its last status. `when`: to save."""
    checkpoint = Checkpoint(str(directory), **{"every_steps": 3, **when})  # type: ignore[arg-type]
    here, value = Runtime(Task("test", "default", "uid", "chief", 0, checkpoint=checkpoint)), tf.Variable(0.0)
    values = loop_of(here, total_steps, value).train()
    return values, float(value), here.progress.status


@pytest.mark.parametrize("total_steps", [4, 2])
def test_a_checkpoint_of_all_steps_or_more_leaves_nothing_to_train(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], total_steps: int
) -> None:
    """Of more, where total_steps was lowered or another run has left it."""
    assert trained(tmp_path, 4)[:2] == ({"loss": 0.25}, 4.0)
    capsys.readouterr()
    values, value, status = trained(tmp_path, total_steps)
    assert (values, value) == ({"loss": 0.25}, 4.0)
    assert (status["step"], status["totalSteps"]) == (4, total_steps)
    assert "etaSeconds" not in status
    found = f"nothing is left to train: the checkpoint of step 4 in {tmp_path} has reached total_steps={total_steps}"
    assert f"{found}: raise total_steps to train on, or choose another checkpoint.storage" in capsys.readouterr().out


def test_a_run_that_trains_does_not_say_that_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path, 4)
    trained(tmp_path, 6)
    assert "nothing is left" not in capsys.readouterr().out


def test_a_stop_after_a_save_that_failed_saves_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Runtime(Task("test", "default", "uid", "chief", 0, checkpoint=Checkpoint(str(tmp_path), every_steps=1)))
    value, write = tf.Variable(0.0), writer.write

    def away_at_first(directory: str, step: int, *rest: Any) -> None:
        if step == 1:
            raise tf.errors.UnknownError(None, None, "Input/output error")
        write(directory, step, *rest)

    class Stopped(Counting):
        def run(self, phase: str, source: Source, work: Any) -> int:
            here.shutdown.signalled = float(value) == 1
            return super().run(phase, source, work)

    monkeypatch.setattr(writer, "write", away_at_first)
    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.0, raising=False)
    with pytest.raises(SystemExit) as left:
        loop_of(here, 4, value, Stopped).train()
    assert left.value.code == exit_codes.TERMINATED
    assert steps_in(str(tmp_path)) == [2]


def test_a_job_that_counts_on_epochs_alone_is_told_that_there_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "checkpoint.everyEpochs has no effect"
    trained(tmp_path / "steps", 4, every_epochs=1)
    assert said not in capsys.readouterr().out
    trained(tmp_path / "epochs", 4, every_epochs=1, every_steps=None)
    assert capsys.readouterr().out.count(said) == 1
