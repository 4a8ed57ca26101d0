# SPDX-License-Identifier: Apache-2.0
"""For how long steps wait for their input, of what a task has counted. No TensorFlow here.

If the host waits for each step, that is the time in which the host read batches. Else devices may work in that time. An
endlessly fast input saves at most the time of reading, and no more than the time in which the devices had no work.
"""

import time
from collections import deque
from collections.abc import Callable

SECONDS = 60.0
"""Time over which waits are averaged."""
LEAST_SECONDS = 5.0
"""Time before which nothing is said of them, since pipelines fill their buffers first."""
MEASURED_SECONDS, MEASURED_STEPS = 10.0, 200
"""The least time and the fewest steps between two that are measured, each of which may take twice as long."""


class InputWait:
    """Of one task in one run."""

    def __init__(self, at_first: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`at_first`: how many steps to measure as soon as possible."""
        self._at_first, self._clock = at_first, clock
        self._seen: deque[tuple[float, ...]] = deque()
        self._measured, self._next = 0, 0.0

    def see(self, stepping: float, reading: float, busy: float | None) -> None:
        """Take what is counted so far, all in seconds. What was before the first time does not count.

        - stepping: in which batches were read and steps ran.
        - reading: in which the host waited for batches.
        - busy: in which devices worked, if the host does not wait for each step; else 0. None: nobody knows.
        """
        if busy is None:
            self._seen.clear()
            return
        self._seen.append((self._clock(), stepping, reading, busy))
        while self._seen[-1][0] - self._seen[min(1, len(self._seen) - 1)][0] >= SECONDS:
            self._seen.popleft()

    def share(self) -> float | None:
        """The share of the last SECONDS in which steps waited. None: not known, or not yet."""
        if not self._seen:
            return None
        seconds, stepping, reading, busy = (now - then for now, then in zip(self._seen[-1], self._seen[0], strict=True))
        if seconds < LEAST_SECONDS:
            return None
        return min(max(min(reading, stepping - busy), 0.0) / seconds, 1.0)

    def measures(self, step: int, steps_per_second: float) -> bool:
        """Whether to measure the next step after `step`. Tasks that give the same numbers are told the same.

        - steps_per_second: 0 while steps are traced.
        """
        if not steps_per_second or step < self._next:
            return False
        self._measured += 1
        if self._measured >= self._at_first:
            self._next = step + max(MEASURED_SECONDS * steps_per_second, MEASURED_STEPS)
        return True
