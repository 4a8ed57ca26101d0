"""One run of training: epochs, steps, saves, and the way back into it after a restart."""

from __future__ import annotations

import json
from typing import Any

import keras
import numpy as np

from dtjob_trainer import checkpoint
from dtjob_trainer.callbacks import Callbacks
from dtjob_trainer.control import Agreement, Control
from dtjob_trainer.runtime import Runtime
from dtjob_trainer.sources import Batch, Source
from dtjob_trainer.state import ModelState

FORMAT = 1
"""Version of the checkpoint's `state`."""


class Training:
    """Trains from wherever the checkpoints are to the last epoch. Every task runs the same steps."""

    def __init__(
        self,
        here: Runtime,
        engine: Any,
        state: ModelState,
        callbacks: Callbacks,
        writer: checkpoint.Writer | None,
        source: Source,
        validation: Source | None,
        epochs: int,
    ) -> None:
        self._here, self._engine, self._state, self._callbacks = here, engine, state, callbacks
        self._writer, self._source, self._validation, self._epochs = writer, source, validation, epochs
        self._settings = here.task.checkpoint if here.task is not None else None
        self._steps_per_epoch = source.steps
        self._step = 0
        self._epochs_ended = 0
        """Epochs whose end (validation, callbacks) is behind us; may lag behind the step by one epoch."""
        self._stopped = False
        """A callback has stopped the training."""
        self._saved: tuple[int, int, bool] | None = None
        """(step, epochs ended, stopped) of the newest checkpoint."""
        self._clock_due = False
        self._history: dict[str, list[float]] = {}
        self._exact = source.exact and callbacks.exact and not engine.remote
        self._speed = 0.0

    def run(self) -> Any:
        """Train to the end; returns Keras's History. Leaves by SystemExit where a stop was asked for."""
        here = self._here
        self._callbacks.train_begin(self._epochs, self._steps_per_epoch)
        if self._settings is not None:
            self._restore()
        here.shutdown.training_begins()
        here.progress.report(
            state="training",
            step=self._step,
            totalSteps=self._epochs * self._steps_per_epoch,
            epoch=self._epochs_ended,
            resume="exact" if self._exact else "approximate",
        )
        clock = self._settings.every_seconds if self._settings is not None else None
        control = Control(self._engine.group, here.shutdown, clock, self._step)
        while self._epochs_ended < self._epochs and not self._stopped:
            self._train_epoch(control)
        self._engine.wait()
        if self._position() != self._saved:
            self._save(control)
        if self._writer is not None:
            self._writer.wait()
        here.shutdown.training_ends()
        logs = {name: values[-1] for name, values in self._history.items() if values}
        self._callbacks.train_end(logs)
        return self._keras_history()

    def _train_epoch(self, control: Control) -> None:
        epoch = self._epochs_ended
        first_step = self._step - epoch * self._steps_per_epoch
        if first_step == 0:  # else the epoch goes on after a restart, and what began it is in the checkpoint
            self._engine.reset_metrics()
            self._callbacks.epoch_begin(epoch)
        for batch in self._source.epoch(epoch, first_step):
            self._train_step(batch, control)
        self._end_epoch(epoch)
        if self._clock_due or self._due_by_steps():
            self._save(control)

    def _train_step(self, batch: Batch, control: Control) -> None:
        engine, per_batch = self._engine, self._callbacks.per_batch
        in_epoch = self._step - self._epochs_ended * self._steps_per_epoch
        if per_batch:
            self._callbacks.batch_begin(in_epoch)
        engine.train(self._source, batch.inputs, batch.count, batch.total)
        self._step += 1
        if per_batch:
            self._callbacks.batch_end(in_epoch, float(engine.group.sum(np.array([engine.loss()], np.float64))[0]))
        if control.due(self._step):
            agreement = control.agree(self._step, engine.loss())
            self._report(agreement)
            if agreement.stop:
                self._save(control)
                self._leave()
            self._clock_due |= agreement.save
        ends_epoch = in_epoch + 1 == self._steps_per_epoch
        if not ends_epoch and (self._clock_due or self._due_by_steps()):  # at an epoch's end: once its end is behind us
            self._save(control)

    def _end_epoch(self, epoch: int) -> None:
        engine = self._engine
        engine.wait()
        logs = engine.read_metrics()
        self._state.average_local()
        if self._validation is not None:
            engine.reset_metrics()
            for batch in self._validation.epoch(0, 0):
                engine.evaluate(self._validation, batch.inputs, batch.count, batch.total)
            engine.wait()
            logs |= {f"val_{name}": value for name, value in engine.read_metrics().items()}
        self._callbacks.epoch_end(epoch, logs)
        votes = engine.group.sum(np.array([float(self._callbacks.stop_training)], np.float64))
        self._stopped = bool(votes[0] > 0)
        self._epochs_ended = epoch + 1
        for name, value in logs.items():
            self._history.setdefault(name, []).append(float(value))
        self._here.progress.report(step=self._step, epoch=self._epochs_ended, metrics=logs)
        shown = "  ".join(f"{name} {value:.4f}" for name, value in logs.items())
        self._here.log(f"epoch {epoch + 1}/{self._epochs}  step {self._step}  {shown}")

    def _report(self, agreement: Agreement) -> None:
        rate = agreement.steps_per_second
        if rate:
            self._speed = 0.7 * self._speed + 0.3 * rate if self._speed else rate
        keys: dict[str, Any] = {"step": self._step, "epoch": self._epochs_ended, "loss": agreement.loss}
        if self._speed:
            left = self._epochs * self._steps_per_epoch - self._step
            keys |= {"stepsPerSecond": round(self._speed, 2), "etaSeconds": round(left / self._speed, 1)}
        self._here.progress.update(**keys)

    def _due_by_steps(self) -> bool:
        every = self._settings.every_steps if self._settings is not None else None
        return bool(every and self._step % every == 0 and self._position() != self._saved)

    def _position(self) -> tuple[int, int, bool]:
        return self._step, self._epochs_ended, self._stopped

    def _save(self, control: Control) -> None:
        """Save at this step, where the job has checkpoints. Collective."""
        self._clock_due = False
        control.saved()
        self._saved = self._position()
        if self._settings is None:
            return
        self._engine.wait()
        tensors = self._state.capture()
        if self._writer is None:
            return
        self._writer.write(
            self._step,
            tensors,
            {
                "format": FORMAT,
                "step": self._step,
                "epochsEnded": self._epochs_ended,
                "stopped": self._stopped,
                "stepsPerEpoch": self._steps_per_epoch,
                "history": self._history,
                "exact": self._exact,
                "callbacks": self._callbacks.get_state() if self._callbacks.exact else None,
            },
        )

    def _leave(self) -> None:
        """End the process after a stop that all tasks agreed on."""
        self._here.progress.report(state="saving", step=self._step)
        if self._writer is not None:
            self._writer.wait()
        raise SystemExit(self._here.shutdown.exit_code)

    def _restore(self) -> None:
        """Go on from the chief's newest checkpoint; every task gets its content from the chief. Collective."""
        group, arrays, blob = self._engine.group, None, b""
        if self._writer is not None:
            assert self._here.task is not None
            found = _newest(self._writer, self._here)
            if found is not None:
                arrays, state = found
                blob = json.dumps(state).encode()
        size = int(group.sum(np.array([len(blob)], np.float64))[0])
        if size == 0:
            return
        state = json.loads(group.broadcast(blob if group.index == 0 else None, size))
        same_replicas = self._state.restore(arrays)
        self._step, self._stopped, self._history = state["step"], state["stopped"], state["history"]
        self._epochs_ended = state["epochsEnded"]
        same_data = state["stepsPerEpoch"] == self._steps_per_epoch
        if not same_data:
            self._epochs_ended = self._step // self._steps_per_epoch
        same_callbacks = state["callbacks"] is not None and self._callbacks.set_state(state["callbacks"])
        self._exact = self._exact and state["exact"] and same_replicas and same_data and same_callbacks
        self._saved = self._position()
        self._here.progress.report(step=self._step, restoredStep=self._step, checkpoint={"step": self._step})
        self._here.log(f"resumed at step {self._step}")

    def _keras_history(self) -> Any:
        history = keras.callbacks.History()
        history.set_model(self._engine.model)
        history.history = self._history
        history.epoch = list(range(self._epochs_ended))
        return history


def _newest(writer: checkpoint.Writer, here: Runtime) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The newest checkpoint that can be read; None where there is none."""
    assert here.task is not None
    for step in reversed(writer.prepare(here.task.uid)):
        try:
            return checkpoint.read(writer.settings.directory, step)
        except checkpoint.UNREADABLE as error:
            here.log(f"checkpoint {step} cannot be read ({error}); trying the one before")
    return None
