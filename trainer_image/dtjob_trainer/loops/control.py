# SPDX-License-Identifier: Apache-2.0
"""What the tasks must agree on while they train: when to stop, when the clock asks for a save, what the loss is."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtjob_trainer.process.shutdown import Shutdown
from dtjob_trainer.strategies.meetings import Meetings

if TYPE_CHECKING:  # its module imports TensorFlow, and nothing here needs that
    from dtjob_trainer.strategies.collective import Group

AGREE_SECONDS = 0.25
"""How often tasks agree: the longest that a stop waits beyond the present step, and how fresh the reported loss is."""

MOST_STEPS = 100
"""Most steps between two agreements of several tasks."""
MOST_STEPS_ALONE = 1000
"""Most steps between two reports of one task, which looks for a stop after each step and call."""
FETCH_SECONDS = 1.0
"""How often to report where steps are handed out: the loss is fetched from a worker, which is busy then."""


@dataclass(frozen=True)
class Agreement:
    """What all tasks know alike after an agreement."""

    stop: bool
    """Some task was asked to stop: all save at this step and end."""
    save: bool
    """The chief's clock says that a checkpoint is due."""
    loss: float
    """Loss of the last step that is done, over the global batch."""
    steps_per_second: float
    """The chief's measured speed; 0 while unknown."""
    waited: float | None = None
    """The share of the time in which the task that waited longest waited for its input. None: not all tasks know."""
    overlaps: bool = False
    """Whether devices of some task may work while its host reads batches. Then all tasks measure steps."""


class Control(Meetings):
    """Decides at which steps to agree, the same in every task, so that no step pays for it in vain."""

    def __init__(
        self, group: "Group", shutdown: Shutdown, every_seconds: float | None, step: int, *, handed_out: bool = False
    ) -> None:
        """Steps begin, or go on, after `step`; the clock runs from now on.

        - every_seconds: how often the clock asks for a save; None: never.
        - handed_out: whether steps are.
        """
        super().__init__(group, 6, lambda: shutdown.requested, step)
        self._shutdown, self._every_seconds = shutdown, every_seconds
        self._seconds = FETCH_SECONDS if handed_out else AGREE_SECONDS
        self._last_done = step
        self._last_time = self._last_save = time.monotonic()
        self._first = True

    def agree(
        self, step: int, loss: float, done: int | None = None, waited: float | None = None, *, overlaps: bool = False
    ) -> Agreement:
        """Agree with all tasks after `step`; `loss` is this task's part. Collective.

        - done: how many steps are done; None: all. Steps that are handed out tell nothing about speed.
        - waited: the share of the time in which this task waited for its input. None: unknown.
        - overlaps: whether devices of this task may work while its host reads batches.
        """
        done = step if done is None else done
        now = time.monotonic()
        # the first interval holds tracing, so it tells nothing about speed
        seconds = max(now - self._last_time, 1e-6)
        rate = 0.0 if self._first else max(done - self._last_done, 0) / seconds
        share = -1.0 if waited is None else waited
        due = self._every_seconds is not None and now - self._last_save >= self._every_seconds
        mine = [self._shutdown.requested, loss, rate, due, share, overlaps]
        stops, losses, rates, saves, waits, overlap = self.meet(step, mine).T
        self._first = False
        self._last_done, self._last_time = done, time.monotonic()
        self.plan(step, steps_until(rates[0], self._seconds, self._group.tasks))
        longest = float(waits.max()) if waits.min() >= 0 else None
        stop, save, overlaps = bool(stops.any()), bool(saves[0]), bool(overlap.any())
        return Agreement(stop, save, float(losses.sum()), float(rates[0]), longest, overlaps)

    def since_saved(self) -> float:
        """Seconds since a checkpoint was taken, or since steps began."""
        return time.monotonic() - self._last_save

    def saved(self) -> None:
        """A checkpoint was taken just now."""
        self._last_save = time.monotonic()


class StopInValidation(Meetings):
    """Decides at which batches of one validation to agree on a stop, the same in every task. A context manager."""

    def __init__(self, group: "Group", shutdown: Shutdown) -> None:
        super().__init__(group, 2, lambda: shutdown.requested)
        self._shutdown = shutdown
        self._last, self._last_time = 0, time.monotonic()
        self._seen = 0

    def __enter__(self) -> "StopInValidation":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.end(self._seen)
        self.break_off()

    def agreed(self, batches: int) -> bool:
        """Whether all tasks stop after so many `batches` of the validation. Collective where it is due."""
        self._seen = batches
        if not self.due(batches):
            return False
        now = time.monotonic()
        rate = (batches - self._last) / max(now - self._last_time, 1e-6)
        stops, rates = self.meet(batches, [self._shutdown.requested, rate]).T
        self._last, self._last_time = batches, time.monotonic()
        # no further ahead than what is done, so that batches that turn slow are noticed
        self.plan(batches, min(steps_until(rates[0], AGREE_SECONDS, self._group.tasks), max(batches, 1)))
        return bool(stops.any())


def steps_until(steps_per_second: float, seconds: float, tasks: int) -> int:
    """How many steps to make between two agreements of so many `tasks`: as many as fit into so many `seconds` at this
    speed, and 1 while it is unknown."""
    most = MOST_STEPS_ALONE if tasks == 1 else MOST_STEPS
    return max(1, min(int(steps_per_second * seconds), most))
