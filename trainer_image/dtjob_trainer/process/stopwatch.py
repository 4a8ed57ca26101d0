# SPDX-License-Identifier: Apache-2.0
"""How long a loop has trained, and for how long of that it stood still for a save."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopwatch:
    """Of one loop. All times are seconds of one monotonic clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._saved = 0.0

    def begin(self) -> None:
        """Training begins now."""
        self._began = self._clock()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Within this, training stands still for a save."""
        began = self._clock()
        try:
            yield
        finally:
            self._saved += self._clock() - began

    def keys(self) -> dict[str, float]:
        """What to report: seconds since training began, and those of them that went into saves; empty before."""
        if self._began is None:
            return {}
        return {"trainedSeconds": round(self._clock() - self._began, 2), "savedSeconds": round(self._saved, 2)}
