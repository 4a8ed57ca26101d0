# SPDX-License-Identifier: Apache-2.0
"""The loop of `train`: a custom step, run until so many are done."""

import time
from typing import Any

import numpy as np

from dtjob_trainer.checkpoint.saves import Restored
from dtjob_trainer.checkpoint.state import TrainState
from dtjob_trainer.contract.doing import DATA, STEPPING
from dtjob_trainer.data.other_batches import Position
from dtjob_trainer.engines.feed import Feed
from dtjob_trainer.engines.step_function import Steps, Values
from dtjob_trainer.loops.control import Agreement
from dtjob_trainer.loops.training_run import TrainingRun
from dtjob_trainer.models.trackables import Trackables
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.collective import Group

LOG_SECONDS = 10.0
"""Least time between two log lines."""

EPOCHS_ALONE = (
    "checkpoint.everyEpochs has no effect on dtjob_trainer.train, which has no epochs; set checkpoint.everySteps or "
    "everySeconds"
)
"""Said if the job counts on a save after epochs."""


class TrainLoop(TrainingRun[TrainState]):
    """The loop of `train`: steps alone."""

    def __init__(
        self,
        here: Runtime,
        group: Group,
        feed: Feed,
        steps: Steps,
        known: Trackables,
        total_steps: int,
        inexact: list[str],
    ) -> None:
        """`inexact`: why a restarted run would not have the same bits; empty where it would."""
        super().__init__(here, group, known.state(), TrainState(), optimizers=known.optimizers, total_steps=total_steps)
        self._feed, self._steps, self._inexact = feed, steps, inexact
        self._last = total_steps
        self._exact = not inexact
        self._last_line = time.monotonic()
        self._mine: Values = {}
        """This task's part of them, as of the last agreement."""

    def train(self) -> Values:
        """Train to the end; returns what the last step gave, summed over all tasks."""
        self.run()
        return self._loop.values

    def _train(self) -> None:
        self._warn_of(self._inexact)
        if self._saves.epochs_alone:
            self._here.log(EPOCHS_ALONE, level="warning", step=self._step)
        if self._step >= self._last:
            return
        for inputs in self._feed.inputs(self._step):
            self._train_step(inputs)
            if self._step >= self._last:
                break
        self._wait()
        self._report(0.0, self._steps.values())

    def _train_step(self, inputs: Any) -> None:
        self._here.pulse.enter(STEPPING)
        self._control.left(self._step)
        self._board.before(self._step, 1)
        self._steps.run(inputs)
        self._step += 1
        if self._board.after(self._step, 1, self._steps.values):
            self._board.step(self._step, self._summed(self._steps.values()))
        self._agree()
        if self._step < self._last and self._save_is_due():
            self._save()
        self._here.pulse.enter(DATA)

    def _wait(self) -> None:
        self._steps.wait()

    def _steps_done(self) -> int:
        return self._step - self._steps.outstanding()

    def _loss(self) -> float | None:
        self._mine = self._steps.values()
        return self._mine.get("loss")

    def _tell(self, agreement: Agreement) -> None:
        self._report(agreement.steps_per_second, self._mine)

    def _close(self) -> None:
        """Nothing: a step leaves nothing open."""

    def _finish(self) -> None:
        self._state.average_local()

    def _where_in_data(self) -> Position | None:
        return self._feed.position(self._step)

    def _kept(self) -> TrainState:
        return self._loop

    def _begin(self) -> None:
        """Nothing: no callbacks are told."""

    def _take_up(self, restored: Restored[TrainState]) -> None:
        self._feed.shared(self._saves.history)
        position = restored.state.position
        if position is not None and (other := self._feed.take_up(position, self._step)) is not None:
            self._inexact.append(other)
            self._exact = False
        if not (restored.same_replicas and restored.state.exact):
            self._inexact.append("the checkpoint is of another number of replicas, or was not exact itself")
            self._exact = False

    def _nothing_left(self) -> str:
        reached = f"has reached total_steps={self._last}: raise total_steps to train on"
        return reached if self._step >= self._last else ""

    def _report(self, steps_per_second: float, mine: Values) -> None:
        """Report what `step_fn` returned in the last step that is done, summed over all tasks. Collective.

        - mine: this task's part.
        """
        done = self._steps_done()
        self._loop.values = self._summed(mine)
        loss = {"loss": self._loop.values["loss"]} if "loss" in self._loop.values else {}
        pace = self._pace_at(steps_per_second)
        self._here.progress.update(step=done, **pace, **loss, metrics=self._loop.values)
        if done >= self._last or time.monotonic() - self._last_line >= LOG_SECONDS:
            self._last_line = time.monotonic()
            self._here.log(f"step {done}/{self._last}", step=done, values=self._loop.values)

    def _summed(self, mine: Values) -> Values:
        """What `step_fn` returned in every task, of which `mine` is this one's, summed up. Collective."""
        sums = self._group.sum(np.array(list(mine.values()), np.float64)) if mine else np.empty(0)
        return dict(zip(mine, sums.tolist(), strict=True))
