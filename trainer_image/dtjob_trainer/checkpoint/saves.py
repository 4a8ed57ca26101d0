# SPDX-License-Identifier: Apache-2.0
"""A run's checkpoints as its loop uses them: restored at the start, written as it goes on, waited for at the end."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, NoReturn

import numpy as np
import tensorflow as tf

from dtjob_trainer.checkpoint import directory, packing
from dtjob_trainer.checkpoint.state import Loop, RunState, read_state
from dtjob_trainer.checkpoint.stored import Stored
from dtjob_trainer.checkpoint.writer import Writer
from dtjob_trainer.contract.settings import DEFAULT_EVERY_SECONDS, EPOCH_SAVES_APART_SECONDS, Checkpoint
from dtjob_trainer.data.sharding import Eras
from dtjob_trainer.errors import CheckpointError
from dtjob_trainer.models.kept_variables import State
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.collective import Group

NEVER = Checkpoint("", every_epochs=0, every_seconds=0)
"""The schedule of a job without checkpoints."""
REMEMBERED = 1000
"""Of how many earlier checkpoints each one knows the steps."""
LONG_SECONDS = 1.0
"""For how long a save may wait for the one before without a word."""


@dataclass(frozen=True)
class Restored(Generic[Loop]):
    """What a run goes on from."""

    state: RunState[Loop]
    same_replicas: bool
    """Whether as many replicas saved as train now."""


class Saves:
    """The checkpoints of one run; without `spec.checkpoint` nothing is ever saved or found."""

    def __init__(self, here: Runtime, group: Group, state: State) -> None:
        self._here, self._group, self._state = here, group, state
        self._settings = here.checkpoint
        self.schedule = here.checkpoint or NEVER
        """When to save."""
        self.history: Eras = ((0, group.tasks),)
        """How many tasks have shared the batches of the run so far."""
        self._writer: Writer | None = None
        self._said_long = False
        self._found: Stored | None = None
        """The checkpoint that was restored, at the chief."""
        self._earlier: list[int] = []
        """Steps of the checkpoints written so far, for an evaluator that misses some of them."""
        if here.is_chief and here.task is not None and self._settings is not None:
            self._writer = Writer(here.task, self._settings, here.progress.report, here.log, here.owner)
            here.before_the_end = self._writer.let_end
            here.owner = self._writer.owner
            here.shutdown.release = here.owner.release

    @property
    def writes(self) -> bool:
        """Whether this task is the one that writes checkpoints."""
        return self._writer is not None

    def due(self, step: int) -> bool:
        """Whether `step` is one after which to save, by the number of steps."""
        every = self.schedule.every_steps
        return every is not None and step % every == 0

    @property
    def epochs_alone(self) -> bool:
        """Whether the manifest asks for saves after epochs, and says nothing of steps or the clock."""
        when = self.schedule
        return bool(when.every_epochs) and not when.every_steps and when.every_seconds in (0, DEFAULT_EVERY_SECONDS)

    def due_after_epoch(self, ended: int, *, by_default: bool) -> bool:
        """Whether to save at the end of an epoch, after which so many have `ended`.

        - by_default: what `due_by_default` says at the chief, as all tasks have agreed on it.
        """
        every = self.schedule.every_epochs
        return by_default if every is None else every > 0 and ended % every == 0

    def due_by_default(self, since_save: float) -> bool:
        """Whether to save an epoch that ends now, if checkpoint.everyEpochs is left out. Only the chief can know.

        A default must not slow training down: the last save has to be old enough, and its write at its end.

        - since_save: seconds since the last save.
        """
        return self._writer is not None and since_save >= EPOCH_SAVES_APART_SECONDS and not self._writer.is_writing

    def write(self, state: RunState[Loop], kept: Callable[[], Loop]) -> None:
        """Save the variables as they are after `state.step`, with the state of the run. Collective.

        `kept` gives what is saved of the loop. It is called at the chief alone, where all callbacks run.
        """
        if self._settings is None:
            return
        began = time.monotonic()
        failed = self._writer.settle() if self._writer is not None else None  # else memory would hold two copies
        waited = time.monotonic() - began
        if waited >= LONG_SECONDS and not self._said_long:
            self._said_long = True
            self._here.log(
                f"training waited {waited:.1f} s until the checkpoint before was written; if this is too long, choose "
                "larger values of checkpoint.everyEpochs, everySteps and everySeconds, or faster storage",
                level="warning",
                step=state.step,
            )
        tensors = self._state.capture()
        if self._writer is not None:
            self._earlier = [each for each in self._earlier if each != failed]
            whole = replace(state, loop=kept(), earlier=self._earlier, groups=self.history)
            self._writer.write(state.step, tensors, whole)
            self._remember(state.step)

    def restore(self, loop: type[Loop]) -> Restored[Loop] | None:
        """Give every task the chief's newest checkpoint; None where there is none. Collective.

        Raises CheckpointError if it is no checkpoint of such a `loop`.
        """
        if self._settings is None:
            return None
        group, blob = self._group, b""
        found = self._newest(self._writer) if self._writer is not None else None
        if found is not None:
            blob = json.dumps(found.state).encode()
        passes_over = found is not None and self._here.next_stage_has_begun
        size, passed = group.sum(np.array([len(blob), passes_over], np.int64)).tolist()
        if size == 0:
            return None
        chiefs = group.broadcast(np.frombuffer(blob, np.uint8) if group.index == 0 else None, size)

        def read(name: str, size: int) -> packing.Bytes:
            return np.array(group.broadcast(None if found is None else found.array(name), size))

        stored = packing.unpack(chiefs.tobytes(), read)
        name = f"{self._settings.directory}/ckpt-{stored.get('step')}"
        found_state = read_state(stored, loop, name, group.anew)
        step = found_state.step
        self._here.progress.passes_over = bool(passed)
        self.history = found_state.groups
        if self.history[-1][1] != group.tasks:
            self.history = (*self.history, (step, group.tasks))
        same_replicas = self._state.restore(found)
        self._found = found
        self._earlier = found_state.earlier
        self._remember(step)
        self._here.progress.report(step=step, restoredStep=step, checkpoint={"step": step})
        resumed = "resumed from the checkpoint" if not self._here.progress.passes_over else "ended before: not repeated"
        self._here.log(resumed, step=step)
        return Restored(found_state, same_replicas)

    def restore_again(self) -> None:
        """Give every variable the value that `restore` gave it. Collective."""
        self._state.restore(self._found)

    def see_owned(self) -> None:
        """Raise CheckpointInUseError at the chief if another job has taken the directory. Reads nothing."""
        if self._writer is not None:
            self._writer.owner.check()

    def wait(self) -> None:
        """Wait until all that was written is on disk."""
        if self._writer is not None:
            self._writer.wait()

    def leave(self, step: int, save: Callable[[], None]) -> NoReturn:
        """End the process after a stop that all tasks agreed on, once `save` has brought `step` to disk. Collective."""
        # said before it begins: a peer that cannot wait may end meanwhile, and this task must not be ended for that
        self._here.progress.report(state="saving", step=step)
        save()
        self.wait()
        self._group.leave_together()
        self._here.stop()

    def _remember(self, step: int) -> None:
        """Count `step` among the earlier checkpoints; the same step may be saved twice."""
        self._earlier = [*(each for each in self._earlier if each != step), step][-REMEMBERED:]

    def _newest(self, writer: Writer) -> Stored | None:
        """The newest checkpoint of which all can be read; None where there is none.

        Raises CheckpointError where there are several and none can be read: it is what reads them that is at fault.
        """
        where, found = writer.settings.directory, None
        damaged: dict[int, tf.errors.OpError] = {}
        for step in reversed(writer.prepare()):
            try:
                newest = Stored(where, step, writer.servers)
                newest.verify()
                found = newest
                break
            except directory.UNREADABLE as error:
                damaged[step] = error
        if found is None and len(damaged) > 1:
            last = max(damaged)
            raise CheckpointError(
                f"checkpoint.storage {where}: none of its {len(damaged)} checkpoints can be read (ckpt-{last}: "
                f"{damaged[last].message}); move them away to begin at step 0"
            ) from damaged[last]
        instead = "the one before is taken" if found else "training begins at step 0"
        for step, damage in damaged.items():
            directory.set_aside(where, step)
            name = f"{directory.DAMAGED}ckpt-{step}"
            why = f"the checkpoint cannot be read and is kept as {name}; {instead}: {damage.message}"
            self._here.log(why, level="warning", step=step)
        return found
