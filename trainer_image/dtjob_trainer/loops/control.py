# SPDX-License-Identifier: Apache-2.0
"""What the tasks must agree on while they train: when to stop, when the clock asks for a save, what the loss is."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dtjob_trainer.process.shutdown import Shutdown

if TYPE_CHECKING:  # its module imports TensorFlow, and nothing here needs that
    from dtjob_trainer.strategies.collective import Group

AGREE_SECONDS = 0.25
"""How often tasks agree: the longest that a stop waits beyond the present step, and how fresh the reported loss is."""

MOST_STEPS = 100
"""Most steps between two agreements of several tasks. Steps of 1 ms may turn into steps of 0.25 s, as where storage is
throttled. A stop is then still heard within the default grace of 30 s."""
MOST_STEPS_ALONE = 1000
"""The same for one task, which looks for a stop after each step and call."""
FETCH_SECONDS = 1.0
"""The same where steps are handed out: the loss is fetched from a worker, which is busy with the next step."""


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
        """`every_seconds`: how often the clock asks for a save; None: never. `handed_out`: whether steps are."""
        self._group, self._shutdown, self._handed_out = group, shutdown, handed_out
        self._every_seconds = every_seconds
        self.begin(0)

    def begin(self, step: int) -> None:
        """Steps begin, or go on, after `step`; the clock runs from now on."""
        self._last_done, self._next = step, step + 1
        self._last_time = self._last_save = time.monotonic()
        self._first = True

    def due(self, step: int) -> bool:
        """Whether to agree after `step`. A task that trains alone also answers a stop at once."""
        return step >= self._next or (self._group.tasks == 1 and self._shutdown.requested)

    def left(self, step: int) -> int:
        """How many steps after `step` come before tasks agree again; at least 1."""
        return max(self._next - step, 1)

    def agree(self, step: int, loss: float, done: int | None = None) -> Agreement:
        """Agree with all tasks after `step`; `loss` is this task's part. Collective.

        - done: how many steps are done; None: all. Steps that are handed out tell nothing about speed.
        """
        done = step if done is None else done
        now = time.monotonic()
        chief = self._group.index == 0
        # the first interval holds tracing, so it tells nothing about speed
        rate = 0.0 if self._first else max(done - self._last_done, 0) / max(now - self._last_time, 1e-6)
        due = self._every_seconds is not None and now - self._last_save >= self._every_seconds
        mine = [float(self._shutdown.requested), loss, rate if chief else 0.0, float(chief and due)]
        stop, loss, rate, save = self._group.sum(np.array(mine, np.float64)).tolist()
        self._first = False
        self._last_done, self._last_time = done, time.monotonic()
        seconds = FETCH_SECONDS if self._handed_out else AGREE_SECONDS
        self._next = step + steps_until(rate, seconds, self._group.tasks)
        return Agreement(stop > 0, save > 0, loss, rate)

    def since_saved(self) -> float:
        """Seconds since a checkpoint was taken, or since steps began."""
        return time.monotonic() - self._last_save

    def saved(self) -> None:
        """A checkpoint was taken just now."""
        self._last_save = time.monotonic()


class StopInValidation:
    """Decides at which batches of one validation to agree on a stop, the same in every task."""

    def __init__(self, group: "Group", shutdown: Shutdown) -> None:
        self._group, self._shutdown = group, shutdown
        self._last, self._next = 0, 1
        self._last_time = time.monotonic()

    def left(self, batches: int) -> int:
        """How many batches after so many come before the tasks agree again; at least 1."""
        return max(self._next - batches, 1)

    def agreed(self, batches: int) -> bool:
        """Whether all tasks stop after so many `batches` of the validation. Collective where it is due."""
        if batches < self._next:
            return self._group.tasks == 1 and self._shutdown.requested
        now = time.monotonic()
        rate = (batches - self._last) / max(now - self._last_time, 1e-6) if self._group.index == 0 else 0.0
        stop, rate = self._group.sum(np.array([float(self._shutdown.requested), rate], np.float64)).tolist()
        self._last, self._last_time = batches, time.monotonic()
        # no further ahead than what is done, so that batches that turn slow are noticed
        self._next = batches + min(steps_until(rate, AGREE_SECONDS, self._group.tasks), batches)
        return bool(stop > 0)


def steps_until(steps_per_second: float, seconds: float, tasks: int) -> int:
    """How many steps to make between two agreements of so many `tasks`: as many as fit into so many `seconds` at this
    speed, and 1 while it is unknown."""
    most = MOST_STEPS_ALONE if tasks == 1 else MOST_STEPS
    return max(1, min(int(steps_per_second * seconds), most))
