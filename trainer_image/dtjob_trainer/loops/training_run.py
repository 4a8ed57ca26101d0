# SPDX-License-Identifier: Apache-2.0
"""One run of a loop: from the newest checkpoint on, with saves and agreements on the way, to its end or a stop."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, NoReturn

from dtjob_trainer.checkpoint import same_call
from dtjob_trainer.checkpoint.saves import Restored, Saves
from dtjob_trainer.checkpoint.state import Call, Loop, RunState
from dtjob_trainer.contract import pipes
from dtjob_trainer.contract.doing import SAVING
from dtjob_trainer.data.other_batches import Position as OfData
from dtjob_trainer.errors import StateError
from dtjob_trainer.loops.control import Agreement, Control
from dtjob_trainer.loops.stopwatch import Stopwatch
from dtjob_trainer.models import initial_values
from dtjob_trainer.models.variables import State
from dtjob_trainer.process.progress import Pace
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.collective import Group
from dtjob_trainer.tensorboard.training import TrainingEvents

LEGACY = "dtjob_trainer.models.tf_keras_model"
"""It brings tf_keras, which is imported only where the program uses it: half a second for three tasks on two cores."""


class TrainingRun(ABC, Generic[Loop]):
    """What every loop does beside its steps. Every task runs the same steps, and all methods are collective.

    A subclass trains in `_train`, calling `_agree` after each step and `_save` where `_save_is_due`, and tells what of
    it a checkpoint keeps.
    """

    def __init__(
        self,
        here: Runtime,
        group: Group,
        state: State,
        loop: Loop,
        *,
        optimizers: Sequence[Any],
        total_steps: int | None,
    ) -> None:
        """`loop`: the state of the loop as a run begins."""
        self._here, self._group, self._state, self._total_steps = here, group, state, total_steps
        self._saves = Saves(here, group, state)
        self._loop: Loop = loop
        """What is kept of the loop; once restored, it is that of the checkpoint."""
        self._call = Call(*_where(here), same_call.described(optimizers))
        """What tells this call from others, for a checkpoint."""
        self._before = self._call
        """That of the checkpoint."""
        self._board = TrainingEvents(here, optimizers)
        self._control = Control(group, here.shutdown, self._saves.every_seconds, handed_out=here.traits.asynchronous)
        self._pace = Pace()
        self._watch = Stopwatch()
        self._step = 0
        """Steps that are done."""
        self._exact = True
        """Whether a restart would come to the same bits, as far as is known."""
        self._saved: Hashable = None
        """The position of the newest checkpoint."""
        self._save_wanted = False
        """The chief's clock or the end of an epoch has asked for a save, and none was taken since."""

    def run(self) -> None:
        """Train to the end. Leaves by SystemExit where a stop was asked for."""
        here = self._here
        self._restore()
        here.shutdown.training_begins()
        self._watch.begin()
        here.progress.report(
            **self._in_state("training"),
            step=self._step,
            **self._watch.keys(),
            resume="exact" if self._exact else "approximate",
            **self._known_total(),
            **self._first_status(),
        )
        if LEGACY in sys.modules:
            here.progress.update(**{pipes.IMPORTED: LEGACY})  # held back until a first step is done
        self._control.begin(self._step)
        self._say_if_nothing_is_left()
        here.pulse.steps_done = self._steps_done
        try:
            self._train()
            self._control.end(self._step)
        finally:
            self._control.break_off()
        self._wait()
        here.progress.report(**self._in_state("saving"), step=self._step, **self._watch.keys(), **self._unusable())
        if self._position() != self._saved:
            self._save()
        with self._watch.saving():
            self._saves.wait()
        here.progress.report(**self._watch.keys())
        self._board.close()
        here.shutdown.training_ends()
        self._finish()
        self._here.pulse.steps_done = lambda: 0
        self._here.progress.steps_before += self._step
        self._group.leave_together()

    def _in_state(self, state: str) -> dict[str, str]:
        """What to report of the state: nothing of a stage that is passed over, in which there are no new steps."""
        return {} if self._here.progress.passes_over else {"state": state}

    def _say_if_nothing_is_left(self) -> None:
        """Say that the checkpoint is one of a run that has ended: else a job that trains nothing looks as any other."""
        checkpoint, why = self._here.checkpoint, self._nothing_left()
        if why:
            self._refuse_another_call()
        if self._here.progress.passes_over and not why:
            self._here.progress.passes_over = False
            self._here.progress.report(**self._in_state("training"), step=self._step, **self._known_total())
            self._here.warn(
                f"call {self._here.stage} of fit or train trains on, although a later one has begun before and goes on "
                f"from its own checkpoints; {self._group.anew} to train from the beginning"
            )
        elif checkpoint and self._step and why and not self._here.progress.passes_over:
            found = f"the checkpoint of step {self._step} in {checkpoint.directory} {why}"
            anew = f"{self._group.anew} to train from the beginning"
            self._here.log(f"nothing is left to train: {found}, or {anew}", step=self._step)

    def _refuse_another_call(self) -> None:
        """Raise StateError if an earlier process of this job ended a call of this number that was another one."""
        if self._before.tasks != self._call.tasks:  # rates and schedules may depend on the size of the group
            return
        other = same_call.difference(self._call.optimizers, self._before.optimizers)
        if other is not None and (self._here.progress.passes_over or self._before.uid == self._call.uid):
            raise StateError(
                f"call {self._here.stage} of fit or train has {other} as in the checkpoint of its end: make the same "
                "calls in the same order in every start, without leaving out those of an earlier start, or "
                f"{self._group.anew} to train from the beginning"
            )

    def _unusable(self) -> dict[str, str]:
        """What to report, and to warn of, where the trained weights are no numbers."""
        what = self._state.unusable() if self._here.is_chief else None
        if what is None:
            return {}
        self._here.log(
            f"training ends with weights that are {what}, so the model is unusable; look for a division by zero, "
            "or lower the learning rate",
            level="warning",
            step=self._step,
        )
        return {"weights": what}

    @abstractmethod
    def _train(self) -> None:
        """Train from `_step` to the end."""

    @abstractmethod
    def _nothing_left(self) -> str:
        """Why the restored checkpoint leaves nothing to train, and what to change; empty where something is left."""

    @abstractmethod
    def _wait(self) -> None:
        """Return when all steps so far are done."""

    @abstractmethod
    def _loss(self) -> float | None:
        """This task's part of the loss of the last step that is done, None where there is none."""

    @abstractmethod
    def _steps_done(self) -> int:
        """Steps that are done, without those that were only handed out. Asked by another thread."""

    @abstractmethod
    def _tell(self, agreement: Agreement) -> None:
        """Report how training goes."""

    @abstractmethod
    def _close(self) -> None:
        """Bring what the step just done leaves open to where a checkpoint can keep it; the run is left after it."""

    @abstractmethod
    def _kept(self) -> Loop:
        """What a checkpoint keeps of the loop. Asked at the chief alone."""

    @abstractmethod
    def _where_in_data(self) -> OfData | None:
        """Where in the data the run is. None: in data that starts anew in each process."""

    @abstractmethod
    def _begin(self) -> None:
        """What to do before the first step, with the variables restored."""

    @abstractmethod
    def _take_up(self, restored: Restored[Loop]) -> None:
        """Go on after `_step`, with the state that was restored. The variables are restored."""

    @abstractmethod
    def _finish(self) -> None:
        """What is left to do where all is trained and saved."""

    def _first_status(self) -> Mapping[str, Any]:
        """What to report beside the step as training begins."""
        return {}

    def _position(self) -> Hashable:
        """Where the run is: two checkpoints of one position are the same."""
        return self._step

    def _agree(self) -> None:
        """Where it is due, learn whether to leave and whether the clock asks for a save."""
        if not self._control.due(self._step):
            return
        self._saves.see_owned()
        agreement = self._control.agree(self._step, self._loss() or 0.0, self._steps_done())
        self._tell(agreement)
        if agreement.stop:
            self._close()
            self._leave()
        self._save_wanted |= agreement.save

    def _pace_at(self, steps_per_second: float) -> dict[str, float]:
        """Speed, time that is left and time that was spent, after a new measurement of the speed (0 where there is
        none)."""
        left = None if self._total_steps is None else self._total_steps - self._step
        return self._pace.keys(steps_per_second, left) | self._watch.keys()

    def _known_total(self) -> dict[str, int]:
        """How many steps there will be, as the status has it; nothing while nobody knows."""
        return {} if self._total_steps is None else {"totalSteps": self._total_steps}

    def _save_is_due(self) -> bool:
        """Whether steps, the clock or an epoch's end ask for a save that is not taken yet."""
        return self._save_wanted or (self._saves.due(self._step) and self._position() != self._saved)

    def _save(self, *, wait: bool = True) -> None:
        """Save at this step, where the job has checkpoints; `wait` as in `_leave`."""
        self._save_wanted = False
        self._control.saved()
        self._saved = self._position()
        if wait:
            self._wait()
        with self._here.pulse.resting(SAVING), self._watch.saving():
            self._saves.write(self._step, self._run_state)

    def _run_state(self) -> RunState[Loop]:
        loop, position = self._kept(), self._where_in_data()
        return RunState(loop, self._step, exact=self._exact, position=position, call=self._call)

    def _leave(self, *, wait: bool = True) -> NoReturn:
        """Save at this step and end the process, after a stop that all tasks agreed on.

        `wait`: for steps that are handed out; without it for none, as only a validation is that goes for nothing.
        """

        def save() -> None:
            self._save(wait=wait)
            self._here.progress.report(**self._watch.keys())
            self._board.close()

        self._control.end(self._step)
        self._saves.leave(self._step, save)

    def _warn_of(self, reasons: Sequence[str]) -> None:
        """Tell why a restart would not come to the same bits, where there may be one."""
        if self._here.task is not None and self._here.task.checkpoint is not None:
            for reason in reasons:
                self._here.log(f"resume is approximate: {reason}", level="warning", step=self._step)

    def _restore(self) -> None:
        """Go on from the chief's newest checkpoint, where there is one.

        The variables come first: callbacks of the program look at them as they begin.
        """
        restored = self._saves.restore(type(self._loop))
        initial_values.agree(self._state if restored is not None else None)
        if restored is None:
            # Also of a process before this one in the same pod: what that had saved is not there.
            self._here.progress.report(restoredStep=0, checkpoint=None)
            self._begin()
        else:
            self._step, self._before, self._loop = restored.state.step, restored.state.call, restored.state.loop
            self._begin()
            self._take_up(restored)
            self._saved = self._position()
        initial_values.agree_on_new()  # what callbacks have made


def _where(here: Runtime) -> tuple[str, dict[str, int]]:
    """The uid of the job, and how many tasks and replicas train."""
    tasks = {role: len(hosts) for role, hosts in here.task.cluster.items()} if here.task is not None else {}
    uid = here.task.uid if here.task is not None else ""
    return uid, {**tasks, "replicas": here.strategy.num_replicas_in_sync}
