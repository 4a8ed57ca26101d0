# SPDX-License-Identifier: Apache-2.0
"""The loop of `fit`, and below it that of `train`."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dtjob_trainer.callbacks import keeping
from dtjob_trainer.callbacks.called import Callbacks
from dtjob_trainer.checkpoint.state import FitState, RunState, TrainState
from dtjob_trainer.contract.doing import CALLBACKS, DATA, STEPPING, VALIDATING
from dtjob_trainer.data.batches import Source
from dtjob_trainer.data.stream import Portion
from dtjob_trainer.engines import exactness
from dtjob_trainer.engines.engine import Engine, Work
from dtjob_trainer.errors import DataError
from dtjob_trainer.loops import alike
from dtjob_trainer.loops.control import Agreement
from dtjob_trainer.loops.evaluate import validated
from dtjob_trainer.loops.training_run import Run
from dtjob_trainer.models.kept_variables import State
from dtjob_trainer.models.trackables import Trackables
from dtjob_trainer.passes.epochs import Epochs
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.tensorboard.training import learning_rates, number, numbers

LOG_SECONDS = 10.0
"""Least time between two log lines of `train`."""
EPOCHS_ALONE = (
    "checkpoint.everyEpochs has no effect on dtjob_trainer.train, which has no epochs; set checkpoint.everySteps or "
    "everySeconds"
)
"""Said if the job counts on a save after epochs."""


class FitLoop:
    """Epochs of steps, with validation and callbacks at their ends."""

    def __init__(
        self,
        here: Runtime,
        engine: Engine,
        variables: State,
        callbacks: Callbacks,
        epochs: Epochs,
        validation: Source | None,
        validates: Callable[[int], bool],
        scale_lr: bool,
    ) -> None:
        """`validates`: whether there is a validation after the epoch of this number (from 0); `scale_lr`: multiply the
        learning rate by the number of replicas."""
        self._here, self._engine, self._variables, self._callbacks = here, engine, variables, callbacks
        self._epochs, self._source, self._validation = epochs, epochs.source, validation
        self._validates, self._scale_lr = validates, scale_lr
        epochs.streams = engine.streams(epochs.source)
        if epochs.source.own_ends and engine.group.tasks > 1:
            variables.leave_out_untouched()
        if scale_lr:
            engine.trained.scale_learning_rate(engine.group.replicas)
        self.state = RunState(FitState(), exact=epochs.source.exact and engine.trained.exact and engine.exact)
        optimizers = engine.trained.optimizers
        self._run = Run(here, engine, epochs, variables, self.state, optimizers=optimizers, kept=self._kept)
        self._keras_history = callbacks.history
        self._last_logs: dict[str, Any] = {}  # what the last epoch's end was told, without what callbacks added to it
        self._asked_to_leave = False  # some task was asked to stop when the tasks last agreed at an epoch's end
        self._warn = functools.cache(here.warn)
        self._looked_at_step = False  # whether what a step uses was held against what a checkpoint keeps

    def fit(self) -> Any:
        """Train to the end; returns Keras's History. Leaves by SystemExit where a stop was asked for."""
        run, epochs = self._run, self._epochs
        self._restore()
        run.begin(self._nothing_left(), epoch=epochs.ended, totalEpochs=epochs.epochs)
        if self._source.inexact:
            run.warn_of(self._source.inexact)
        with run.running():
            while self._goes_on():
                self._train_epoch()
                if self._asked_to_leave and self._goes_on():
                    run.leave()
                if run.save_is_due():
                    run.save()
        run.save_the_end()
        self._end()
        run.end()
        return self._keras_history

    def _train_epoch(self) -> None:
        """Train from where the run is to the end of the epoch."""
        state, epochs = self.state, self._epochs
        if state.loop.epoch_logs is None:  # else a restart resumes where the steps of the epoch are done
            if state.step == epochs.began:  # else it goes on within the epoch, and the checkpoint has its begin
                self._begin_epoch()
            while not state.stopped and (work := self._next_work()):
                state.step += (count := self._train(work))
                self._after_step(count)
        self._source.epoch_ends()
        if state.loop.epoch_logs is None:
            self._keep_logs()
        self._end_epoch(self._validated())

    def _restore(self) -> None:
        """Go on from the newest checkpoint, where there is one. Each of these needs what is restored before it."""
        run, callbacks, epochs = self._run, self._callbacks, self._epochs
        model, steps = self._engine.trained.model, epochs.steps_per_epoch
        model.history = history = self._keras_history  # as in Keras, for callbacks to look at
        history.set_model(model)
        history.history, history.epoch = {}, []
        self._source.epoch_ends()  # as Keras, before all else
        callbacks.reset()
        same = run.restore()
        callbacks.train_begin(epochs.epochs, steps)  # callbacks may look at the variables
        if run.saves.writes:
            run.inexact(callbacks.look_at_state())  # said now, and not at the first save
        if same is not None:
            self._take_up_logs()
            self._tell_of_the_past()
            same &= self._restore_callbacks()
            self.state.exact &= same
        history.history, history.epoch = self.state.loop.history, list(epochs.numbers)

    def _take_up_logs(self) -> None:
        loop = self.state.loop
        loop.history = keeping.decode(loop.history)
        was_validated = self._validates(self._epochs.ended - 1)
        known = (item for item in loop.history.items() if was_validated or not item[0].startswith("val_"))
        self._last_logs = {name: values[-1] for name, values in known}
        self._run.total_steps = self._epochs.total(self.state.step)

    def _tell_of_the_past(self) -> None:
        """Tell data and callbacks, in the order of the first time, what a new process has not seen."""
        for epoch in self._epochs.numbers:
            self._source.epoch_begins()
            self._source.epoch_ends()
            if self._validation is not None and self._validates(epoch):
                self._validation.epoch_ends()
                self._validation.epoch_begins()
                self._validation.epoch_ends()
        if self.state.step > self._epochs.began:
            self._callbacks.epoch_begin_again(self._epochs.ended)
            self._source.epoch_begins()

    def _restore_callbacks(self) -> bool:
        """Give callbacks their state, and undo what their beginning has changed in variables: it was done before.

        Whether all tasks have the callbacks that the checkpoint has.
        """
        run, tasks, loop = self._run, self._run.group.tasks, self.state.loop
        if run.sums(self._callbacks.begin_by_own) != [0]:
            run.saves.restore_again()
        began = run.saves.history[0][1]
        if self._scale_lr and began != tasks:  # the global batch is the same, and so are the rates
            self._engine.trained.scale_learning_rate(began / tasks, schedules_alone=True)
        mine = self._callbacks.set_state(loop.callbacks)
        loop.callbacks = []  # the arrays among them are the callbacks' now
        same = run.sums(not mine) == [0]
        if not same:
            run.warn_of("a task has other callbacks than the chief had where the checkpoint was written")
        return same

    def _nothing_left(self) -> str:
        """Why the restored checkpoint leaves nothing to train, and what to change; empty where something is left."""
        if self._goes_on():
            return ""
        if self.state.stopped:
            return "is of a run that a callback has stopped: remove that callback to train on"
        return f"has all epochs={self._epochs.epochs}: raise epochs to train on"

    def _goes_on(self) -> bool:
        """Whether there is another epoch, or one whose validation is left."""
        return (self._epochs.go_on and not self.state.stopped) or self.state.loop.epoch_logs is not None

    def _begin_epoch(self) -> None:
        here, epochs, callbacks = self._here, self._epochs, self._callbacks
        self._engine.reset_metrics()
        here.pulse.enter(CALLBACKS)
        callbacks.epoch_begin(epochs.ended)
        if callbacks.may_part and here.task is not None:
            rates = learning_rates(self._engine.trained.optimizers)
            alike.see_rates_agree(self._run.group, list(rates.values()))
        here.pulse.enter(DATA)
        self._source.epoch_begins()

    def _next_work(self) -> Work:
        """The next batches of the epoch: as many as nothing happens between, but none beyond the next save."""
        run, step, engine = self._run, self.state.step, self._engine
        self._here.pulse.enter(DATA)
        every, left, most = run.saves.schedule.every_steps, run.control.left(step), engine.steps_per_call
        if not self._callbacks.per_batch:
            most = engine.most_in_one_call("train", self._source, run.board.left(step, left))
        return self._epochs.take(step, min(most, every - step % every) if every else most)

    def _train(self, work: Work) -> int:
        """Train on these batches in one call; how many steps that were."""
        step, board = self.state.step, self._run.board
        if self._callbacks.per_batch:
            self._here.pulse.enter(CALLBACKS)
            self._callbacks.list.on_train_batch_begin(step - self._epochs.began)
        self._here.pulse.enter(STEPPING)
        board.before(step, work.most if isinstance(work, Portion) else len(work))
        count = self._engine.run("train", self._source, work)
        self._look_at_step()
        if board.after(step + count, count, self._engine.loss):
            mine = self._engine.loss()
            loss = {} if mine is None else {"loss": self._run.sums(mine)[0]}
            board.step(step + count, self._engine.results("train") | loss)
        return count

    def _after_step(self, count: int) -> None:
        """Do what is due after a call of `count` steps: tell callbacks, agree with the other tasks, save, leave."""
        run = self._run
        if self._callbacks.per_batch:
            logs = self._engine.logs()
            self._here.pulse.enter(CALLBACKS)
            self._callbacks.batch_end(self.state.step - self._epochs.began - 1, count, logs)
            self._here.pulse.enter(STEPPING)
            self._agree_to_stop()
        if run.control.due(self.state.step):
            loss = self._engine.loss()
            agreement = run.agree(loss)
            known = {"loss": agreement.loss} if loss is not None else {}
            pace = run.pace(agreement)
            self._here.progress.update(step=run.steps_done, epoch=self._epochs.ended, **known, **pace)
            if agreement.stop:
                if self._ends_epoch():
                    self._keep_logs()
                run.leave()
        # at an epoch's end, early or not: once its end is behind us
        if run.save_is_due() and not self._ends_epoch():
            run.save()

    def _ends_epoch(self) -> bool:
        """Whether the step just done is the last of its epoch, early or not."""
        return self.state.stopped or self._epochs.ends(self.state.step)

    def _look_at_step(self) -> None:
        """Once it is traced, say what a step uses that no checkpoint keeps. Of an exact engine only."""
        if self._looked_at_step or not self._engine.exact:
            return
        self._looked_at_step = True
        lost = (
            "which none of its layers, metrics and optimizers tracks: lost in a restart; make it with a layer's "
            "add_weight()"
        )
        seeds, traced = "a SeedGenerator that a layer has as an attribute", self._engine.traced(self._source)
        self._run.inexact(exactness.of_step(traced, "the model", seeds, self._variables.not_among, lost))

    def _keep_logs(self) -> None:
        """Keep an epoch's logs before its validation takes the metrics. Collective."""
        self._engine.wait()
        logs = self._engine.results("train")
        self.state.loop.epoch_logs = {name: v if isinstance(v, list) else float(v) for name, v in logs.items()}
        self._variables.average_local()

    def _validated(self) -> dict[str, Any]:
        """The logs of the epoch whose steps are done, with those of its validation, which is run where it is due."""
        logs = dict(self.state.loop.epoch_logs or {})
        if self._validation is not None and self._validates(self._epochs.ended):
            with self._here.pulse.resting(VALIDATING):
                found = validated(self._validation, self._engine, self._callbacks, self._here)
            if found is None:
                self._run.leave(wait=False)
            logs |= {f"val_{name}": value for name, value in found.items()}
        return logs

    def _end_epoch(self, logs: dict[str, Any]) -> None:
        """Tell callbacks and the status, and keep these `logs` in the History."""
        run, state, epochs, here = self._run, self.state, self._epochs, self._here
        epoch, state.loop.epoch_logs, self._last_logs = epochs.ended, None, logs
        here.pulse.enter(CALLBACKS)
        logs = self._callbacks.epoch_end(epoch, logs, state.step - epochs.began)
        here.pulse.enter(STEPPING)
        by_default = self._agree_to_stop(save=run.saves.due_by_default(run.control.since_saved()))
        epochs.end(state.step)
        run.want_save(by_default=by_default)
        for name, value in logs.items():
            single = number(value)  # callbacks may add anything
            state.loop.history.setdefault(name, []).append(value if single is None else single)
        self._keras_history.epoch = list(epochs.numbers)
        shown = numbers(logs)
        here.say_left_out(name for name in logs if name not in shown)
        run.total_steps = epochs.total(state.step)
        told = {"epoch": epochs.ended, "metrics": shown, **run.known_total(), **run.watch.keys()}
        here.progress.report(step=state.step, **told)
        if (level := self._callbacks.level) is not None:
            here.log(f"epoch {epoch + 1}/{epochs.epochs}", level=level, step=state.step, values=shown)
        run.board.epoch(state.step, logs)

    def _agree_to_stop(self, *, save: bool = False) -> bool:
        """Whether a callback of any task has asked to stop, and whether any task was told to. Collective.

        - save: whether this task would save here. Returns whether any task would.
        """
        stops, leaves, saves = self._run.sums(self._callbacks.stop_training, self._here.shutdown.requested, save)
        self.state.stopped |= stops > 0
        self._asked_to_leave = leaves > 0
        return saves > 0

    def _end(self) -> None:
        """What Keras does at the end of a training."""
        model = self._engine.trained.model
        finalize = getattr(model.optimizer, "finalize_variable_values", None)  # for use_ema, which not all have
        if finalize is not None and self.state.step > 0:  # averages begin with the first step, as zeros before it
            finalize(model.trainable_weights)
        self._callbacks.list.on_train_end(dict(self._last_logs))

    def _kept(self) -> FitState:
        """What a checkpoint holds of this loop."""
        loop, (callbacks, not_kept) = self.state.loop, self._callbacks.get_state()
        self._run.inexact(not_kept)  # callbacks may get other attributes as training goes on
        for why in self._callbacks.files_left_out():
            self._warn(why)
        return replace(loop, history=keeping.encode_history(loop.history), callbacks=callbacks)


class TrainLoop:
    """The loop of `train`: steps of the program's own, until so many are done."""

    def __init__(
        self,
        here: Runtime,
        engine: Engine,
        known: Trackables,
        epochs: Epochs,
        total_steps: int,
        inexact: Sequence[str],
        rows: int | None = None,
    ) -> None:
        """`inexact`: why a restarted run would not have the same bits; empty where it would.

        - rows: the examples of this task in each batch. None: any number.
        """
        self._here, self._engine, self._epochs, self._inexact, self._rows = here, engine, epochs, [*inexact], rows
        self._variables, self._last = known.state(), total_steps
        self.state = RunState(TrainState(), exact=not inexact)
        self._run = Run(
            here, engine, epochs, self._variables, self.state, optimizers=known.optimizers, kept=lambda: self.state.loop
        )
        self._run.total_steps = total_steps
        self._last_line = time.monotonic()

    def train(self) -> dict[str, float]:
        """Train to the end; returns what the last step gave, summed over all tasks."""
        run, state, epochs, last = self._run, self.state, self._epochs, self._last
        if run.restore() is False:
            self._inexact.append("the checkpoint is of other batches or replicas, or was not exact itself")
            state.exact = False
        run.begin(f"has reached total_steps={last}: raise total_steps to train on" if state.step >= last else "")
        for reason in self._inexact:
            run.warn_of(reason)
        if run.saves.epochs_alone:
            self._here.log(EPOCHS_ALONE, level="warning", step=state.step)
        trains = state.step < last
        with run.running():
            while state.step < last:
                if not (work := epochs.take(state.step, 1)):
                    epochs.end(state.step)  # of a pass
                    continue
                self._train(work)
                self._after_step()
        if trains:
            self._engine.wait()
            self._report(None, self._engine.values())
        run.save_the_end()
        self._variables.average_local()
        run.end()
        return state.loop.values

    def _train(self, work: Work) -> None:
        assert not isinstance(work, Portion)
        [batch] = work
        if self._rows is not None and batch.count != self._rows:
            raise DataError(f"data: a batch has {batch.count} examples for this task instead of {self._rows}")
        self._here.pulse.enter(STEPPING)
        self._run.control.left(self.state.step)
        self._run.board.before(self.state.step, 1)
        self._engine.run("train", self._epochs.source, work)
        self.state.step += 1

    def _after_step(self) -> None:
        run, step = self._run, self.state.step
        if run.board.after(step, 1, self._engine.values):
            run.board.step(step, self._summed(self._engine.values()))
        if run.control.due(step):
            mine = self._engine.values()
            agreement = run.agree(mine.get("loss"))
            self._report(agreement, mine)
            if agreement.stop:
                run.leave()
        if step < self._last and run.save_is_due():
            run.save()
        self._here.pulse.enter(DATA)

    def _report(self, agreement: Agreement | None, mine: dict[str, float]) -> None:
        """Report what `step_fn` returned in the last step that is done, summed over all tasks. Collective.

        - agreement: with its measurements. None: there are no new ones.
        - mine: this task's part.
        """
        done = self._run.steps_done
        self.state.loop.values = values = self._summed(mine)
        loss = {"loss": values["loss"]} if "loss" in values else {}
        self._here.progress.update(step=done, **self._run.pace(agreement), **loss, metrics=values)
        if done >= self._last or time.monotonic() - self._last_line >= LOG_SECONDS:
            self._last_line = time.monotonic()
            self._here.log(f"step {done}/{self._last}", step=done, values=values)

    def _summed(self, mine: dict[str, float]) -> dict[str, float]:
        """What `step_fn` returned in every task, of which `mine` is this one's, summed up. Collective."""
        return dict(zip(mine, self._run.sums(*mine.values()), strict=True))
