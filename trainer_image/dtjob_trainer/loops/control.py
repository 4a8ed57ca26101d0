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


class Control:
    """Decides at which steps to agree, the same in every task, so that no step pays for it in vain."""

    def __init__(
        self, group: "Group", shutdown: Shutdown, every_seconds: float | None, *, handed_out: bool = False
    ) -> None:
        """`every_seconds`: how often the clock asks for a save; None: never. `handed_out`: whether steps are.

        Call `begin` before any other method.
        """
        self._group, self._shutdown, self._handed_out = group, shutdown, handed_out
        self._every_seconds = every_seconds

    def begin(self, step: int) -> None:
        """Steps begin, or go on, after `step`; the clock runs from now on."""
        self._meetings = Meetings(self._group, 4, lambda: self._shutdown.requested, step)
        self._last_done = step
        self._last_time = self._last_save = time.monotonic()
        self._first = True

    def due(self, step: int) -> bool:
        """Whether to agree after `step`. A task that trains alone also answers a stop at once."""
        return self._meetings.due(step)

    def left(self, step: int) -> int:
        """How many steps a call after `step` may have, at least 1. To be asked before each call."""
        return self._meetings.left(step)

    def end(self, step: int) -> None:
        """There are no steps after `step`. Collective."""
        self._meetings.end(step)

    def break_off(self) -> None:
        """There are no further steps in this task, after an error."""
        self._meetings.break_off()

    def agree(self, step: int, loss: float, done: int | None = None) -> Agreement:
        """Agree with all tasks after `step`; `loss` is this task's part. Collective.

        - done: how many steps are done; None: all. Steps that are handed out tell nothing about speed.
        """
        done = step if done is None else done
        now = time.monotonic()
        # the first interval holds tracing, so it tells nothing about speed
        rate = 0.0 if self._first else max(done - self._last_done, 0) / max(now - self._last_time, 1e-6)
        due = self._every_seconds is not None and now - self._last_save >= self._every_seconds
        stops, losses, rates, saves = self._meetings.meet(step, [self._shutdown.requested, loss, rate, due]).T
        self._first = False
        self._last_done, self._last_time = done, time.monotonic()
        seconds = FETCH_SECONDS if self._handed_out else AGREE_SECONDS
        self._meetings.plan(step, steps_until(rates[0], seconds, self._group.tasks))
        return Agreement(bool(stops.any()), bool(saves[0]), float(losses.sum()), float(rates[0]))

    def since_saved(self) -> float:
        """Seconds since a checkpoint was taken, or since steps began."""
        return time.monotonic() - self._last_save

    def saved(self) -> None:
        """A checkpoint was taken just now."""
        self._last_save = time.monotonic()


class StopInValidation:
    """Decides at which batches of one validation to agree on a stop, the same in every task. A context manager."""

    def __init__(self, group: "Group", shutdown: Shutdown) -> None:
        self._group, self._shutdown = group, shutdown
        self._meetings = Meetings(group, 2, lambda: shutdown.requested)
        self._last, self._last_time = 0, time.monotonic()
        self._seen = 0

    def __enter__(self) -> "StopInValidation":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._meetings.end(self._seen)
        self._meetings.break_off()

    def left(self, batches: int) -> int:
        """How many batches a call after so many may have, at least 1. To be asked before each call."""
        return self._meetings.left(batches)

    def agreed(self, batches: int) -> bool:
        """Whether all tasks stop after so many `batches` of the validation. Collective where it is due."""
        self._seen = batches
        if self._group.tasks == 1 and self._shutdown.requested:
            return True
        if not self._meetings.due(batches):
            return False
        now = time.monotonic()
        rate = (batches - self._last) / max(now - self._last_time, 1e-6)
        stops, rates = self._meetings.meet(batches, [self._shutdown.requested, rate]).T
        self._last, self._last_time = batches, time.monotonic()
        # no further ahead than what is done, so that batches that turn slow are noticed
        self._meetings.plan(batches, min(steps_until(rates[0], AGREE_SECONDS, self._group.tasks), max(batches, 1)))
        return bool(stops.any())


def steps_until(steps_per_second: float, seconds: float, tasks: int) -> int:
    """How many steps to make between two agreements of so many `tasks`: as many as fit into so many `seconds` at this
    speed, and 1 while it is unknown."""
    most = MOST_STEPS_ALONE if tasks == 1 else MOST_STEPS
    return max(1, min(int(steps_per_second * seconds), most))
