# SPDX-License-Identifier: Apache-2.0
"""Asking: which supervisor is asked for its status, and when. Silent ones do not delay the others.

A chief that accepts a connection and never answers costs a slot for seconds. So no namespace has more than a share of
the slots; those that did not answer last time, or were never asked, share half of them; and who stays silent is asked
ever less often.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dtjob.controller.cluster import JobKey
from dtjob.controller.pace.backoff import Backoff

AT_ONCE = 200
"""Questions under way over all namespaces."""
AT_ONCE_IN_NAMESPACE = 20
LONGEST_PAUSE_SECONDS = 60.0
"""Between two questions to one that stays silent."""


@dataclass(frozen=True)
class Supervisor:
    """One to ask: the pod of a task, and where it listens."""

    job: JobKey
    task: str
    pod_uid: str
    host: str
    port: int
    only_if_chief_silent: bool = False
    """Whether it is asked only while the chief's status cannot be read."""

    @property
    def address(self) -> str:
        """`host:port`, as URLs have it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class _Known:
    due: float
    silent: int = 0
    """Questions in a row that brought no status."""
    proven: bool = False
    """Whether it answered the last question."""


class Asking:
    """Who is due. `now` is in seconds of one clock throughout."""

    def __init__(self, every_seconds: float) -> None:
        self._every = every_seconds
        self._pauses = Backoff(every_seconds, max(LONGEST_PAUSE_SECONDS, every_seconds))
        self._known: dict[Supervisor, _Known] = {}
        self._asked: set[Supervisor] = set()
        self._later: list[tuple[float, int, Supervisor]] = []
        self._waiting: dict[Supervisor, None] = {}
        """Those that are due and have no slot yet, in the order in which they became due."""
        self._order = itertools.count()

    def seen(self, supervisors: Iterable[Supervisor], now: float) -> None:
        """Take in who is to be asked; those who are not among them are forgotten."""
        supervisors = list(supervisors)
        old, self._known = self._known, {}
        for one in supervisors:
            if one in old:
                self._known[one] = old[one]
            else:
                self._plan(one, _Known(now))

    def next(self, now: float) -> list[Supervisor]:
        """Those to ask now, who count as asked from here on; whoever waits longest comes first."""
        while self._later and self._later[0][0] <= now:
            due, _, one = heapq.heappop(self._later)
            if one in self._known and self._known[one].due == due and one not in self._asked:
                self._waiting[one] = None
        total, unproven = Counter[str](), Counter[str]()
        for one in self._asked:
            self._count(one, total, unproven)
        chosen: list[Supervisor] = []
        for one in list(self._waiting):
            if one not in self._known:
                del self._waiting[one]
            elif self._has_slot(one, total, unproven):
                self._count(one, total, unproven)
                chosen.append(one)
                del self._waiting[one]
        self._asked.update(chosen)
        return chosen

    def answered(self, one: Supervisor, now: float) -> None:
        """It told its status."""
        self._asked.discard(one)
        if one in self._known:
            self._plan(one, _Known(now + self._every, proven=True))

    def stayed_silent(self, one: Supervisor, now: float) -> None:
        """It did not: the next question comes later each time."""
        self._asked.discard(one)
        if one in self._known:
            silent = self._known[one].silent + 1
            self._plan(one, _Known(now + self._pauses.after(silent), silent))

    def _plan(self, one: Supervisor, known: _Known) -> None:
        self._known[one] = known
        heapq.heappush(self._later, (known.due, next(self._order), one))

    def _proven(self, one: Supervisor) -> bool:
        return one in self._known and self._known[one].proven

    def _count(self, one: Supervisor, total: Counter[str], unproven: Counter[str]) -> None:
        total[one.job[0]] += 1
        if not self._proven(one):
            unproven[one.job[0]] += 1

    def _has_slot(self, one: Supervisor, total: Counter[str], unproven: Counter[str]) -> bool:
        namespace = one.job[0]
        if total.total() >= AT_ONCE or total[namespace] >= AT_ONCE_IN_NAMESPACE:
            return False
        share_is_used = unproven.total() >= AT_ONCE // 2 or unproven[namespace] >= AT_ONCE_IN_NAMESPACE // 2
        return self._proven(one) or not share_is_used
