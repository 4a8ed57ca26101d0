# SPDX-License-Identifier: Apache-2.0
"""Backoff: how long to wait before what failed is tried again, what was refused, and what somebody changes back."""

import math
from collections.abc import Hashable, Set
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Backoff:
    """Waits in seconds: `first`, then twice as long each time, and `longest` at most."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """The wait after so many failures in a row, from 1 on."""
        return min(self.first * 2.0 ** min(failures - 1, 30), self.longest)


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
        """Seconds until the first of what is held may be tried, at least the shortest wait. None if nothing is held.
        Something else may hold up what may be tried by now, as a role holds up its pods."""
        waits = [hold.until - now for hold in self._holds.values()]
        return max(IN_THE_WAY.first, min(waits)) if waits else None


REPAIRS_AT_ONCE = 5
"""Repairs of one object that are made at once; each later one waits twice as long as the one before."""
REPAIR_WAIT = Backoff(2.0, 60.0)
REPAIRS_FORGOTTEN_AFTER = timedelta(minutes=15)
"""An object that was left alone so long begins anew."""


class RepairLimit:
    """Remembers how often each shared object of one job was repaired. Somebody else may change it back each time, such
    as a GitOps tool."""

    def __init__(self) -> None:
        self._repaired: dict[Hashable, tuple[int, datetime]] = {}

    def note(self, what: Hashable, now: datetime) -> None:
        """It is repaired now."""
        self._repaired[what] = self._times(what, now) + 1, now

    def wait(self, what: Hashable, now: datetime) -> timedelta:
        """How long it is to be left as it is."""
        if (times := self._times(what, now)) < REPAIRS_AT_ONCE:
            return timedelta()
        wait = timedelta(seconds=REPAIR_WAIT.after(times - REPAIRS_AT_ONCE + 1))
        return max(self._repaired[what][1] + wait - now, timedelta())

    def _times(self, what: Hashable, now: datetime) -> int:
        times, last = self._repaired.get(what, (0, now))
        return times if now - last <= REPAIRS_FORGOTTEN_AFTER else 0
