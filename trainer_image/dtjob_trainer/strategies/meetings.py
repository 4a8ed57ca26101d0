# SPDX-License-Identifier: Apache-2.0
"""After which steps the tasks of a group exchange numbers: after as many as planned, or earlier if steps turn slow.

Each meeting has one exchange, in which every task names a step. The training thread names the planned step when it gets
there. If that takes more than SECONDS, a second thread names the last step of the call that runs. A task starts no
further call until it knows the steps that all tasks have named. They meet after the last of these: no task can have
passed it, because each step needs all tasks.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # its module imports TensorFlow, and nothing here needs that
    from dtjob_trainer.strategies.collective import Group

SECONDS = 1.0
"""The longest time between two meetings, beside the call of steps that runs then."""
POLL_SECONDS = 0.1
"""How often the second thread looks at the clock."""
MOST_IN_ONE_CALL = 16
"""Most steps in one call of several tasks, which cannot leave it before its end."""
FIRST_KEY, KEYS, KEYS_OF_EACH = 2**30, 2**30, 2**12
"""Keys of exchanges (`Group.of_each`) that no others have. Each `Meetings` uses KEYS_OF_EACH of them in turn."""
_made = count()

Table = npt.NDArray[np.float64]


class Meetings:
    """The meetings of one series of steps. Every task makes it at the same place, and takes calls of the same steps."""

    def __init__(self, group: "Group", numbers: int, is_urgent: Callable[[], bool], step: int = 0) -> None:
        """The first meeting is to be one step after `step`. The clock runs from now on.

        - numbers: how many numbers are exchanged.
        - is_urgent: whether this task wants to meet at once; any thread asks.
        """
        self._group, self._numbers, self._is_urgent = group, numbers, is_urgent
        self._first_key = FIRST_KEY + next(_made) * KEYS_OF_EACH % KEYS
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._number = 0
        self.plan(step, 1)
        if group.tasks > 1:
            threading.Thread(target=self._watch, name="meetings", daemon=True).start()

    def plan(self, step: int, steps: int) -> None:
        """All tasks have met after `step`, and the next meeting is to be so many `steps` later."""
        with self._lock:
            self._planned, self._last_of_call, self._number = step + steps, step, self._number + 1
            self._latest = time.monotonic() + SECONDS
            self._named: int | None = None
            self._found: Future[Table] = Future()

    def due(self, step: int) -> bool:
        """Whether to meet after `step`. To be asked once after each call."""
        if self._group.tasks == 1:
            return step >= self._planned or self._is_urgent()
        with self._lock:
            if self._named is None:
                is_due = step >= self._planned
                # the training thread is about to name `step`, after which other tasks may meet already
                self._last_of_call = step if is_due else max(self._last_of_call, step + 1)
                return is_due
        return step >= self._named and step >= self._next()

    def left(self, step: int) -> int:
        """The most steps that a call after `step` may have; at least 1. To be asked before each call.

        Waits for the other tasks if this one has named a step.
        """
        with self._lock:
            if self._named is None:
                most = self._most(step, self._planned)
                self._last_of_call = step + most
                return most
        return self._most(step, self._next())

    def meet(self, step: int, mine: Sequence[float]) -> Table:
        """The numbers of all tasks after `step`, of which `mine` are this one's: [tasks, numbers]. Collective."""
        found = self._name(step, [0.0, *mine])
        if found[:, 1].any():  # some task has named its step without its numbers
            return self._group.of_each(np.array(mine, np.float64))
        return found[:, 2:]

    def end(self, step: int) -> None:
        """There are no steps after `step`. Collective."""
        if self._group.tasks > 1 and not self._closed.is_set():
            self._name(step, [1.0] + [0.0] * self._numbers)
            self.break_off()

    def break_off(self) -> None:
        """There are no further steps in this task, after an error."""
        self._closed.set()

    def _most(self, step: int, until: int) -> int:
        return max(until - step if self._group.tasks == 1 else min(until - step, MOST_IN_ONE_CALL), 1)

    def _next(self) -> int:
        """The last step that a task has named. Waits until all have."""
        return int(self._found.result()[:, 0].max())

    def _name(self, step: int, others: Sequence[float]) -> Table:
        """Name `step` for the next meeting, if no step is named yet. Returns what all tasks have named."""
        with self._lock:
            is_first = self._named is None
            self._named = step if self._named is None else self._named
        if is_first:
            self._exchange([step, *others])
        return self._found.result()

    def _exchange(self, mine: Sequence[float]) -> None:
        key = self._first_key + self._number % KEYS_OF_EACH
        try:
            self._found.set_result(self._group.of_each(np.array(mine, np.float64), key))
        except BaseException as error:  # the training thread raises it
            self._found.set_exception(error)

    def _watch(self) -> None:
        while not self._closed.wait(POLL_SECONDS):
            with self._lock:
                if self._named is not None or (time.monotonic() < self._latest and not self._is_urgent()):
                    continue
                self._named = self._last_of_call
            self._exchange([self._named, 1.0] + [0.0] * self._numbers)
