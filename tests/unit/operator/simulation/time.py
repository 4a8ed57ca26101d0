# SPDX-License-Identifier: Apache-2.0
"""An event loop whose time passes only when nothing is left to do: hours of waiting in milliseconds, alike each run."""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any


class _JumpingSelector(selectors.SelectSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """Instead of waiting, move the clock to when the next timer is due."""
        if timeout is None:
            raise RuntimeError("every task waits and no timer is set: nothing will ever happen again")
        # Work takes a moment too: else a timer due within a rounding error would spin for ever.
        self.now += max(timeout, 1e-6)
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """`asyncio.sleep(3600)` returns at once, with `time()` 3600 s later."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def simulated(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Have a test that is a coroutine run in simulated time."""

    @functools.wraps(story)
    def play(*arguments: Any, **fixtures: Any) -> None:
        with closing(SimulatedLoop()) as loop:
            loop.run_until_complete(story(*arguments, **fixtures))

    return play
