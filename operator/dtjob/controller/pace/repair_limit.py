# SPDX-License-Identifier: Apache-2.0
"""Repair limit: how often an object is repaired. Somebody else may change it back each time, such as a GitOps tool."""

from collections.abc import Hashable
from datetime import datetime, timedelta

from dtjob.controller.pace.backoff import Backoff

AT_ONCE = 5
"""Repairs of one object that are made at once; each later one waits twice as long as the one before."""
WAIT = Backoff(2.0, 60.0)
FORGOTTEN_AFTER = timedelta(minutes=15)
"""An object that was left alone so long begins anew."""


class RepairLimit:
    """Remembers what was repaired of one job."""

    def __init__(self) -> None:
        self._repaired: dict[Hashable, tuple[int, datetime]] = {}

    def __len__(self) -> int:
        """How many objects are remembered."""
        return len(self._repaired)

    def note(self, what: Hashable, now: datetime) -> None:
        """It is repaired now."""
        times = self._times(what, now) + 1
        known = self._repaired.items()
        self._repaired = {one: past for one, past in known if now - past[1] <= FORGOTTEN_AFTER} | {what: (times, now)}

    def wait(self, what: Hashable, now: datetime) -> timedelta:
        """How long it is to be left as it is."""
        times = self._times(what, now)
        if times < AT_ONCE:
            return timedelta()
        wait = timedelta(seconds=WAIT.after(times - AT_ONCE + 1))
        return max(self._repaired[what][1] + wait - now, timedelta())

    def _times(self, what: Hashable, now: datetime) -> int:
        times, last = self._repaired.get(what, (0, now))
        return times if now - last <= FORGOTTEN_AFTER else 0
