# SPDX-License-Identifier: Apache-2.0
"""Holds: creates that were refused, and when each may be tried again."""

from collections.abc import Set
from dataclasses import dataclass

from dtjob.controller.pace.backoff import Backoff

IN_THE_WAY = Backoff(1.0, 15.0)
"""Before a look whether what is in the way has gone. A refused object (a quota, a stranger's name) is tried again after
the longest of these waits."""


@dataclass(frozen=True)
class Hold:
    """Not before `until`, unless the object with the uid `blocker` is known to be gone earlier. `stands`: the object is
    there, and only putting it right failed."""

    until: float
    tries: int
    blocker: str | None = None
    stands: bool = False


class Holds:
    """The holds of one job, by what is not to be tried (`Kind/name`, or any other words). Times are the loop's."""

    def __init__(self) -> None:
        self._holds: dict[str, Hold] = {}

    def refused(self, what: str, now: float, *, stands: bool = False) -> None:
        """Note a refusal, which only a user or an administrator can correct. `stands`: of a repair of what is there."""
        self._put(what, Hold(now + IN_THE_WAY.longest, self.tries(what) + 1, stands=stands))

    def in_the_way(self, what: str, now: float, blocker: str) -> None:
        """Note that the object `blocker` has the name and will be gone some time."""
        tries = self.tries(what) + 1
        self._put(what, Hold(now + IN_THE_WAY.after(tries), tries, blocker))

    def lift(self, what: str) -> None:
        """Note that it was done."""
        self._holds.pop(what, None)

    def keep(self, wanted: Set[str]) -> None:
        """Forget what nobody wants any more."""
        self._holds = {what: hold for what, hold in self._holds.items() if what in wanted}

    def tries(self, what: str) -> int:
        """How often in a row it was tried in vain."""
        hold = self._holds.get(what)
        return hold.tries if hold else 0

    def blocker(self, what: str) -> str | None:
        """The uid of the object in the way, None if there is none."""
        hold = self._holds.get(what)
        return hold.blocker if hold else None

    def stands(self, what: str) -> bool:
        """Whether the object that is held is there all the same."""
        hold = self._holds.get(what)
        return hold is not None and hold.stands

    def holds(self, what: str, now: float) -> bool:
        """Whether it is not to be tried now."""
        hold = self._holds.get(what)
        return hold is not None and now < hold.until

    def next_try(self, now: float) -> float | None:
        """Seconds until the first of what is held may be tried, None if nothing is. At least the
        shortest wait: what is over by now may be held up by something else, such as a pod by its role."""
        waits = [hold.until - now for hold in self._holds.values()]
        return max(IN_THE_WAY.first, min(waits)) if waits else None

    def _put(self, what: str, hold: Hold) -> None:
        self._holds[what] = hold
