# SPDX-License-Identifier: Apache-2.0
"""Holds: creates that were refused, and when each may be tried again."""

import math
from collections.abc import Set
from dataclasses import dataclass

from dtjob.controller.pace.backoff import Backoff

IN_THE_WAY = Backoff(1.0, 15.0)
"""Before a look whether what is in the way has gone. A refused object (a quota, a stranger's name) is tried again after
the longest of these waits."""


@dataclass(frozen=True)
class Hold:
    """Not before `until`, after so many `tries` in vain, unless the object with the uid `blocker` is known to be gone
    earlier. `stands`: the object is there, and only putting it right failed."""

    until: float = -math.inf
    tries: int = 0
    blocker: str = ""
    stands: bool = False


FREE = Hold()


class Holds:
    """The holds of one job, by what is not to be tried (`Kind/name`, or any other words). Times are the loop's."""

    def __init__(self) -> None:
        self._holds: dict[str, Hold] = {}

    def of(self, what: str) -> Hold:
        """The last hold, which may be over."""
        return self._holds.get(what, FREE)

    def hold(self, what: str, now: float, *, blocker: str = "", stands: bool = False) -> None:
        """Note that it cannot be done. If `blocker` is set, that object has the name and will be gone some time.
        Otherwise the cluster refuses it, which only a user or an administrator can correct."""
        tries = self.of(what).tries + 1
        wait = IN_THE_WAY.after(tries) if blocker else IN_THE_WAY.longest
        self._holds[what] = Hold(now + wait, tries, blocker, stands)

    def lift(self, what: str) -> None:
        """Note that it was done."""
        self._holds.pop(what, None)

    def keep(self, wanted: Set[str]) -> None:
        """Forget what nobody wants any more."""
        self._holds = {what: hold for what, hold in self._holds.items() if what in wanted}

    def next_try(self, now: float) -> float | None:
        """Seconds until the first of what is held may be tried, None if nothing is. At least the
        shortest wait: what is over by now may be held up by something else, such as a pod by its role."""
        waits = [hold.until - now for hold in self._holds.values()]
        return max(IN_THE_WAY.first, min(waits)) if waits else None
