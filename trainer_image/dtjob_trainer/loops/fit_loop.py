# SPDX-License-Identifier: Apache-2.0
"""The loop of `fit`: epochs of steps, validation and callbacks, and the way back into an epoch after a restart."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dtjob_trainer.callbacks import keeping
from dtjob_trainer.callbacks.called import Callbacks
from dtjob_trainer.checkpoint.saves import Restored
from dtjob_trainer.checkpoint.state import FitState
from dtjob_trainer.contract.doing import CALLBACKS, DATA, STEPPING, VALIDATING
from dtjob_trainer.data.batches import Source
from dtjob_trainer.data.other_batches import Position
from dtjob_trainer.data.stream import Portion
from dtjob_trainer.engines.engine import Engine, Work
from dtjob_trainer.loops import alike, exactness
from dtjob_trainer.loops.control import Agreement
from dtjob_trainer.loops.training_run import TrainingRun
from dtjob_trainer.loops.validation import validated
from dtjob_trainer.models.variables import State
from dtjob_trainer.passes.epochs import Epochs
from dtjob_trainer.process.peer_loss import is_peer_loss
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.tensorboard.training import learning_rates, number, numbers


class FitLoop(TrainingRun[FitState]):
    """The loop of `fit`: epochs of steps, with validation and callbacks at their ends."""

    def __init__(
        self,
        here: Runtime,
        engine: Engine,
        state: State,
        callbacks: Callbacks,
        epochs: Epochs,
        validation: Source | None,
        validates: Callable[[int], bool] = lambda _: True,
        scale_lr: bool = False,
    ) -> None:
        """`validates`: whether there is a validation after the epoch of this number (from 0); `scale_lr`: multiply the
        learning rate by the number of replicas."""
        optimizers = engine.trained.optimizers
        super().__init__(here, engine.group, state, FitState(), optimizers=optimizers, total_steps=epochs.total(0))
        self._engine, self._callbacks = engine, callbacks
        self._epochs, self._source, self._validation = epochs, epochs.source, validation
        epochs.streams = engine.streams(epochs.source)
        if epochs.source.own_ends and engine.group.tasks > 1:
            state.leave_out_untouched()
        self._validates, self._scale_lr = validates, scale_lr
        if scale_lr:
            engine.trained.scale_learning_rate(engine.group.replicas)
        self._has_loss = False
        """Whether a step told its loss at the last agreement."""
        self._asked_to_leave = False
        """Some task was asked to stop when the tasks last agreed at an epoch's end."""
        self._keras_history = callbacks.history
        self._last_logs: dict[str, Any] = {}
        """What the last epoch's end was told, without what callbacks added to it."""
        self._warn = functools.cache(here.warn)
        self._done_in_call = 0
        """Steps of the call that an error has ended: those before the error were done."""
        self._looked_at_step = False
        """Whether what a step uses was held against what a checkpoint keeps."""
        self._exact = epochs.source.exact and callbacks.exact and engine.trained.exact and engine.exact

    def fit(self) -> Any:
        """Train to the end; returns Keras's History. Leaves by SystemExit where a stop was asked for."""
        model = self._engine.trained.model
        self._keras_history.set_model(model)
        self._keras_history.history, self._keras_history.epoch = self._loop.history, []
        model.history = self._keras_history  # as in Keras, for callbacks to look at
        self._source.epoch_ends()  # as Keras, before all else
        self._callbacks.reset()
        self.run()
        return self._keras_history

    def _begin(self) -> None:
        self._callbacks.train_begin(self._epochs.epochs, self._epochs.steps_per_epoch)
        if self._saves.writes:
            self._callbacks.look_at_state()  # what no checkpoint can hold is said now, and not at the first save
            self._say_not_kept()

    def _train(self) -> None:
        self._warn_of([self._source.inexact] if self._source.inexact else [])
        before = self._engine.updates() - self._step
        try:
            while self._goes_on() or self._loop.epoch_logs is not None:
                self._train_epoch()
        except Exception as error:
            if not is_peer_loss(error, self._here.members):  # after which a GPU may hold back what it has
                self._done_in_call = max(0, self._engine.updates() - before - self._step)
            raise

    def _nothing_left(self) -> str:
        if self._goes_on() or self._loop.epoch_logs is not None:
            return ""
        if self._loop.stopped:
            return "is of a run that a callback has stopped: remove that callback to train on"
        return f"has all epochs={self._epochs.epochs}: raise epochs to train on"

    def _wait(self) -> None:
        self._engine.wait()

    def _loss(self) -> float | None:
        mine = self._engine.loss()
        self._has_loss = mine is not None
        return mine

    def _steps_done(self) -> int:
        return self._step + self._done_in_call - self._engine.outstanding()

    def _first_status(self) -> Mapping[str, Any]:
        return {"epoch": self._epochs.ended, "totalEpochs": self._epochs.epochs}

    def _position(self) -> tuple[int, int, bool]:
        return self._step, self._epochs.ended, self._loop.stopped

    def _finish(self) -> None:
        model = self._engine.trained.model
        finalize = getattr(model.optimizer, "finalize_variable_values", None)  # for use_ema, which not all have
        if finalize is not None and self._step > 0:  # averages begin with the first step, as zeros before it
            finalize(model.trainable_weights)
        self._callbacks.train_end(self._last_logs)

    def _goes_on(self) -> bool:
        return self._epochs.go_on and not self._loop.stopped

    def _train_epoch(self) -> None:
        epochs = self._epochs
        if self._loop.epoch_logs is None:  # else a restart resumes where its steps are done
            if self._step == epochs.began:  # else it goes on within the epoch, and what began it is in the checkpoint
                self._engine.reset_metrics()
                self._here.pulse.enter(CALLBACKS)
                self._callbacks.epoch_begin(epochs.ended)
                if self._callbacks.may_part and self._here.task is not None:
                    rates = learning_rates(self._engine.trained.optimizers)
                    alike.see_rates_agree(self._group, list(rates.values()))
                self._here.pulse.enter(DATA)
                epochs.begin()
            while not self._loop.stopped and (work := self._next_work()):
                self._train_steps(work)
        epochs.end_steps()
        self._end_epoch(epochs.ended)
        if self._asked_to_leave and self._goes_on():
            self._leave()
        if self._save_is_due():
            self._save()

    def _next_work(self) -> Work:
        self._here.pulse.enter(DATA)
        return self._epochs.take(self._step, self._steps_in_one_call())

    def _steps_in_one_call(self) -> int:
        """As many steps as nothing happens between, but none beyond the next save."""
        every, step, most = self._saves.every_steps, self._step, self._engine.steps_per_call
        left = self._control.left(step)
        if not self._callbacks.per_batch:
            most = self._engine.most_in_one_call("train", self._source, self._board.left(step, left))
        return min(most, every - step % every) if every else most

    def _train_steps(self, work: Work) -> None:
        engine, per_batch, pulse = self._engine, self._callbacks.per_batch, self._here.pulse
        in_epoch = self._step - self._epochs.began
        if per_batch:
            pulse.enter(CALLBACKS)
            self._callbacks.batch_begin(in_epoch)
        pulse.enter(STEPPING)
        self._board.before(self._step, work.most if isinstance(work, Portion) else len(work))
        count = engine.train(self._source, work)
        self._look_at_step()
        self._step += count
        if self._board.after(self._step, count, engine.loss):
            mine = engine.loss()
            loss = {} if mine is None else {"loss": engine.group.sum(np.array([mine], np.float64))[0]}
            self._board.step(self._step, engine.epoch_logs() | loss)
        in_epoch += count - 1
        if per_batch:
            logs = engine.logs()
            pulse.enter(CALLBACKS)
            self._callbacks.batch_end(in_epoch, logs)
            pulse.enter(STEPPING)
            self._agree_to_stop()
        self._agree()
        # at an epoch's end, early or not: once its end is behind us
        if self._save_is_due() and not self._ends_epoch():
            self._save()

    def _ends_epoch(self) -> bool:
        """Whether the step just done is the last of its epoch, early or not."""
        return self._loop.stopped or self._epochs.ends(self._step)

    def _close(self) -> None:
        if self._ends_epoch():
            self._close_steps()

    def _look_at_step(self) -> None:
        """Once it is traced, say what a step uses that no checkpoint keeps. Of an exact engine only."""
        if self._looked_at_step or not self._engine.exact:
            return
        self._looked_at_step = True
        found = exactness.of_model(self._engine.traced(self._source), self._state)
        if found and self._exact:
            self._exact = False
            self._here.progress.report(resume="approximate")
        self._warn_of(found)

    def _close_steps(self) -> None:
        """Keep an epoch's logs before its validation takes the metrics. Collective."""
        self._engine.wait()
        logs = self._engine.epoch_logs()
        self._loop.epoch_logs = {name: v if isinstance(v, list) else float(v) for name, v in logs.items()}
        self._state.average_local()

    def _end_epoch(self, epoch: int) -> None:
        if self._loop.epoch_logs is None:  # else a restart resumes here
            self._close_steps()
        logs = dict(self._loop.epoch_logs or {})
        if self._validation is not None and self._validates(epoch):
            with self._here.pulse.resting(VALIDATING):
                found = validated(self._validation, self._engine, self._callbacks, self._here)
            if found is None:
                self._leave(wait=False)
            logs |= {f"val_{name}": value for name, value in found.items()}
        self._loop.epoch_logs = None
        self._last_logs = logs
        self._here.pulse.enter(CALLBACKS)
        logs = self._callbacks.epoch_end(epoch, logs, self._step - self._epochs.began)
        self._here.pulse.enter(STEPPING)
        by_default = self._agree_to_stop(save=self._saves.due_by_default(self._control.since_saved()))
        self._epochs.end(self._step)
        self._save_wanted |= self._saves.due_after_epoch(self._epochs.ended, by_default=by_default)
        for name, value in logs.items():
            single = number(value)  # callbacks may add anything
            self._loop.history.setdefault(name, []).append(value if single is None else single)
        self._keras_history.epoch = list(self._epochs.numbers)
        shown = numbers(logs)
        self._here.say_left_out(name for name in logs if name not in shown)
        self._total_steps = self._epochs.total(self._step)
        told = {"epoch": self._epochs.ended, "metrics": shown, **self._known_total(), **self._watch.keys()}
        self._here.progress.report(step=self._step, **told)
        if (level := self._callbacks.level) is not None:
            self._here.log(f"epoch {epoch + 1}/{self._epochs.epochs}", level=level, step=self._step, values=shown)
        self._board.epoch(self._step, logs)

    def _agree_to_stop(self, *, save: bool = False) -> bool:
        """Whether a callback of any task has asked to stop, and whether any task was told to. Collective.

        - save: whether this task would save here. Returns whether any task would.
        """
        mine = [self._callbacks.stop_training, self._here.shutdown.requested, save]
        votes = self._engine.group.sum(np.array(mine, np.float64))
        self._loop.stopped |= bool(votes[0] > 0)
        self._asked_to_leave = bool(votes[1] > 0)
        return bool(votes[2] > 0)

    def _tell(self, agreement: Agreement) -> None:
        loss = {"loss": agreement.loss} if self._has_loss else {}
        pace = self._pace_at(agreement.steps_per_second)
        self._here.progress.update(step=self._steps_done(), epoch=self._epochs.ended, **loss, **pace)

    def _where_in_data(self) -> Position:
        return self._epochs.position(self._step)

    def _kept(self) -> FitState:
        callbacks = self._callbacks.get_state()
        self._say_not_kept()
        for why in self._callbacks.files_left_out():
            self._warn(why)
        return replace(self._loop, history=keeping.encode_history(self._loop.history), callbacks=callbacks)

    def _say_not_kept(self) -> None:
        """Tell what checkpoints lack of callbacks, once. Callbacks may get other attributes as training goes on."""
        if self._callbacks.not_kept and self._exact:
            self._exact = False
            self._here.progress.report(resume="approximate")
        for why in self._callbacks.not_kept:
            self._warn(f"resume is approximate: {why}")

    def _take_up(self, restored: Restored[FitState]) -> None:
        assert restored.state.position is not None
        self._loop.history = self._keras_history.history = keeping.decode(self._loop.history)
        self._epochs.take_up(restored.state.position, self._step, steps_done=self._loop.epoch_logs is not None)
        self._epochs.history = self._saves.history
        was_validated = self._validates(self._epochs.ended - 1)
        known = (item for item in self._loop.history.items() if was_validated or not item[0].startswith("val_"))
        self._last_logs = {name: values[-1] for name, values in known}
        self._total_steps = self._epochs.total(self._step)
        self._tell_of_the_past()
        self._restore_callbacks(restored)

    def _tell_of_the_past(self) -> None:
        """Tell data and callbacks, in the order of the first time, what a new process has not seen."""
        for epoch in self._epochs.numbers:
            self._epochs.begin()
            self._epochs.end_steps()
            if self._validation is not None and self._validates(epoch):
                self._validation.epoch_ends()
                self._validation.epoch_begins()
                self._validation.epoch_ends()
        if self._step > self._epochs.began:
            self._callbacks.epoch_begin_again(self._epochs.ended)
            self._epochs.begin()

    def _restore_callbacks(self, restored: Restored[FitState]) -> None:
        """Give callbacks their state, and undo what their beginning has changed in variables: it was done before."""
        state = restored.state
        if self._group.sum(np.array([float(self._callbacks.begin_by_own)]))[0]:
            self._saves.restore_again()
        began = self._saves.history[0][1]
        if self._scale_lr and began != self._group.tasks:  # the global batch is the same, and so are the rates
            self._engine.trained.scale_schedules(began / self._group.tasks)
        mine = self._callbacks.set_state(self._loop.callbacks)
        self._loop.callbacks = []  # the arrays among them are the callbacks' now
        same_callbacks = bool(self._group.sum(np.array([float(not mine)]))[0] == 0)
        if not same_callbacks:
            self._warn_of(["a task has other callbacks than the chief had where the checkpoint was written"])
        assert state.position is not None
        same = restored.same_replicas and self._epochs.same(state.position) and same_callbacks
        self._exact = self._exact and state.exact and same
        self._keras_history.epoch = list(self._epochs.numbers)
