# SPDX-License-Identifier: Apache-2.0
"""One run of a loop: its state, its checkpoints, what its tasks agree on, and what it reports."""

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, NoReturn

import numpy as np

from dtjob_trainer.checkpoint import same_call
from dtjob_trainer.checkpoint.saves import Saves
from dtjob_trainer.checkpoint.state import Call, Loop, RunState
from dtjob_trainer.contract.doing import SAVING
from dtjob_trainer.engines.engine import MEASUREMENTS, Engine
from dtjob_trainer.errors import StateError
from dtjob_trainer.loops.control import Agreement, Control
from dtjob_trainer.loops.input_wait import InputWait
from dtjob_trainer.models import initial_values
from dtjob_trainer.models.kept_variables import State
from dtjob_trainer.passes.epochs import Epochs
from dtjob_trainer.process.peer_loss import is_peer_loss
from dtjob_trainer.process.progress import Pace
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.process.stopwatch import Stopwatch
from dtjob_trainer.tensorboard.training import TrainingEvents


class Run(Generic[Loop]):
    """What every loop does beside its steps. Every task runs the same steps, and all methods are collective.

    A loop calls `restore`, `begin`, `agree` after each call of the engine, `save` where `save_is_due`, `save_the_end`
    and `end`. It counts its steps in `state.step`.
    """

    def __init__(
        self,
        here: Runtime,
        engine: Engine,
        epochs: Epochs,
        variables: State,
        state: RunState[Loop],
        *,
        optimizers: Sequence[Any],
        kept: Callable[[], Loop],
    ) -> None:
        """`kept`: what a checkpoint holds of the loop. It is called at the chief alone."""
        self.here, self.group, self._engine, self._epochs = here, engine.group, engine, epochs
        self._variables = variables
        self._kept: Callable[[], Loop] = kept
        self.state: RunState[Loop] = state
        tasks = {role: len(hosts) for role, hosts in here.task.cluster.items()} if here.task is not None else {}
        sizes = {**tasks, "replicas": here.strategy.num_replicas_in_sync}
        state.call = Call(here.task.uid if here.task is not None else "", sizes, same_call.described(optimizers))
        self._before = state.call  # the call that the checkpoint is of
        self.saves = Saves(here, self.group, variables)
        self.board = TrainingEvents(here, optimizers)
        self.control: Control
        """Known once steps begin."""
        self.watch = Stopwatch()
        self._pace, self._input = Pace(), InputWait(MEASUREMENTS)
        self.total_steps = epochs.total(0)
        """Steps of the whole run. None: nobody knows yet."""
        self._warned: set[str] = set()
        self._done_in_call = 0  # steps of the call that an error has ended: those before the error were done
        self._saved: Hashable = None  # the position of the newest checkpoint
        self._save_wanted = False
        """The chief's clock or the end of an epoch has asked for a save, and none was taken since."""

    @property
    def steps_done(self) -> int:
        """Steps that are done, without those that were only handed out. Any thread may ask."""
        return self.state.step + self._done_in_call - self._engine.outstanding()

    def restore(self) -> bool | None:
        """Take the chief's newest checkpoint: its state, then the variables, then the place in the data.

        Whether that run had the same bits, with this data and as many replicas. None: there is no checkpoint.
        """
        restored = self.saves.restore(type(self.state.loop))
        initial_values.agree(self._variables if restored is not None else None)
        if restored is None:
            # Also of a process before this one in the same pod: what that had saved is not there.
            self.here.progress.report(restoredStep=0, checkpoint=None)
            return None
        state, before = self.state, restored.state
        self._before = before.call
        state.loop, state.step, state.stopped = before.loop, before.step, before.stopped
        self._epochs.history = self.saves.history
        assert before.position is not None
        steps_done = getattr(before.loop, "epoch_logs", None) is not None  # of the epoch; its validation is not
        self._epochs.take_up(before.position, state.step, steps_done=steps_done)
        self._saved = self._position()
        return bool(restored.same_replicas and before.exact and self._epochs.same(before.position))

    def begin(self, nothing_left: str, **status: Any) -> None:
        """Report that steps begin, or say why the checkpoint leaves none.

        - nothing_left: why not, and what to change; empty where something is left.
        - status: what to report beside the step.
        """
        here, step = self.here, self.state.step
        initial_values.agree_on_new()  # what callbacks have made
        here.shutdown.training_begins()
        self.watch.begin()
        here.progress.report(
            **self._in_state("training"),
            step=step,
            **self.watch.keys(),
            resume="exact" if self.state.exact else "approximate",
            **self.known_total(),
            **status,
        )
        every_seconds, handed_out = self.saves.schedule.every_seconds or None, here.traits.asynchronous
        self.control = Control(self.group, here.shutdown, every_seconds, step, handed_out=handed_out)
        self._say_if_nothing_is_left(nothing_left)
        here.pulse.steps_done = lambda: self.steps_done

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """While this lasts, steps run. If an error ends a call of several steps, those before the error count."""
        before = self._engine.updates() - self.state.step
        try:
            yield
            self.control.end(self.state.step)
        except Exception as error:
            if not is_peer_loss(error, self.here.members):  # after which a GPU may hold back what it has
                self._done_in_call = max(0, self._engine.updates() - before - self.state.step)
            raise
        finally:
            self.control.break_off()

    def agree(self, loss: float | None) -> Agreement:
        """Agree whether to stop, and whether the clock asks for a save. Call it where `control.due`.

        - loss: this task's part of the loss of the last step that is done, None where there is none.
        """
        self.saves.see_owned()
        engine, source, step = self._engine, self._epochs.source, self.state.step
        self._input.see(self.here.pulse.stepping_seconds(), source.waited, engine.busy(source, step))
        share = self._input.share()
        agreement = self.control.agree(step, loss or 0.0, self.steps_done, share, overlaps=engine.overlaps)
        if agreement.overlaps and self._input.measures(step, agreement.steps_per_second):
            engine.measures_next = True
        self._save_wanted |= agreement.save
        return agreement

    def inexact(self, reasons: Sequence[str]) -> None:
        """Note, report and tell once that a restart would not come to the same bits. Nothing if there is no reason."""
        if reasons and self.state.exact:
            self.state.exact = False
            self.here.progress.report(resume="approximate")
        for reason in reasons:
            self.warn_of(reason)

    def warn_of(self, reason: str) -> None:
        """Tell, once, why a restart would not come to the same bits, where there may be one."""
        if reason not in self._warned and self.here.checkpoint is not None:
            self._warned.add(reason)
            self.here.log(f"resume is approximate: {reason}", level="warning", step=self.state.step)

    def pace(self, agreement: Agreement | None) -> dict[str, float | None]:
        """What to report of speed, waits and time, after new measurements (None: there are no new ones)."""
        left = None if self.total_steps is None else self.total_steps - self.state.step
        if agreement is not None:
            self._pace.measured(agreement.steps_per_second, agreement.waited)
        return self._pace.keys(left, self._epochs.source.batch) | self.watch.keys()

    def known_total(self) -> dict[str, int]:
        """How many steps there will be, as the status has it; nothing while nobody knows."""
        return {} if self.total_steps is None else {"totalSteps": self.total_steps}

    def want_save(self, *, by_default: bool) -> None:
        """Ask for a save at the end of an epoch, if one is due. `by_default`: as `Saves.due_after_epoch` has it."""
        self._save_wanted |= self.saves.due_after_epoch(self._epochs.ended, by_default=by_default)

    def save_is_due(self) -> bool:
        """Whether steps, the clock or an epoch's end ask for a save that is not taken yet."""
        return self._save_wanted or (self.saves.due(self.state.step) and self._position() != self._saved)

    def save(self, *, wait: bool = True) -> None:
        """Save at this step, where the job has checkpoints; `wait` as in `leave`."""
        self._save_wanted = False
        self.control.saved()
        self._saved = self._position()
        if wait:
            self._engine.wait()
        self.state.position = self._epochs.position(self.state.step)
        with self.here.pulse.resting(SAVING), self.watch.saving():
            self.saves.write(self.state, self._kept)

    def leave(self, *, wait: bool = True) -> NoReturn:
        """Save at this step and end the process, after a stop that all tasks agreed on.

        `wait`: for steps that are handed out; without it for none, as only a validation is that goes for nothing.
        """

        def save() -> None:
            self.save(wait=wait)
            self.here.progress.report(**self.watch.keys())
            self.board.close()

        self.control.end(self.state.step)
        self.saves.leave(self.state.step, save)

    def save_the_end(self) -> None:
        """All steps are done: bring them to disk. From then on a stop ends the process at once."""
        here = self.here
        self._engine.wait()
        here.progress.report(**self._in_state("saving"), step=self.state.step, **self.watch.keys(), **self._unusable())
        if self._position() != self._saved:
            self.save()
        with self.watch.saving():
            self.saves.wait()
        here.progress.report(**self.watch.keys())
        self.board.close()
        here.shutdown.training_ends()

    def end(self) -> None:
        """Return when every task has ended the run."""
        self.here.pulse.steps_done = lambda: 0
        self.here.progress.steps_before += self.state.step
        self.group.leave_together()

    def _position(self) -> Hashable:
        """Where the run is: two checkpoints of one position are the same."""
        return self.state.step, self._epochs.ended, self.state.stopped

    def sums(self, *mine: float) -> list[float]:
        """The sum over all tasks of each of these numbers. Collective."""
        found: list[float] = self.group.sum(np.array(mine, np.float64)).tolist()
        return found

    def _in_state(self, state: str) -> dict[str, str]:
        """What to report of the state: nothing of a stage that is passed over, in which there are no new steps."""
        return {} if self.here.progress.passes_over else {"state": state}

    def _say_if_nothing_is_left(self, why: str) -> None:
        """Say that the checkpoint is of a run that has ended. Otherwise a job that trains nothing looks like any other.

        Raises StateError if another call of the program made that run.
        """
        here, step = self.here, self.state.step
        anew = f"{self.group.anew} to train from the beginning"
        before, now = self._before, self.state.call
        # an earlier process of this job may have ended another call of this number; rates depend on the group's size
        if why and before.tasks == now.tasks and (here.progress.passes_over or before.uid == now.uid):
            other = same_call.difference(now.optimizers, before.optimizers)
            if other is not None:
                raise StateError(
                    f"call {here.stage} of fit or train has {other} as in the checkpoint of its end: make the same "
                    f"calls in the same order in every start, without leaving out those of an earlier start, or {anew}"
                )
        if here.progress.passes_over and not why:
            here.progress.passes_over = False
            here.progress.report(**self._in_state("training"), step=step, **self.known_total())
            here.warn(
                f"call {here.stage} of fit or train trains on, although a later one has begun before and goes on "
                f"from its own checkpoints; {anew}"
            )
        elif here.checkpoint and step and why and not here.progress.passes_over:
            found = f"the checkpoint of step {step} in {here.checkpoint.directory} {why}"
            here.log(f"nothing is left to train: {found}, or {anew}", step=step)

    def _unusable(self) -> dict[str, str]:
        """What to report, and to warn of, where the trained weights are no numbers."""
        what = self._variables.unusable() if self.here.is_chief else None
        if what is None:
            return {}
        self.here.log(
            f"training ends with weights that are {what}, so the model is unusable; look for a division by zero, "
            "or lower the learning rate",
            level="warning",
            step=self.state.step,
        )
        return {"weights": what}
