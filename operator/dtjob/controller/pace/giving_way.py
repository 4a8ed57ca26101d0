# SPDX-License-Identifier: Apache-2.0
"""Giving way: how many calls of a large job are under way while small jobs make theirs.

If a large job's calls keep the whole API server busy, calls in turn (`slots.py`) do not help a small job. Each of its
few calls then takes ten times as long as on a quiet one, and so do all others. So while small jobs make calls, large
ones use only what the API server has to spare. Its answers are compared with the quickest recent ones, as TCP Vegas
measures a network's queues. An API server with cores to spare is asked as much as ever. A large job alone is not
limited.
"""

import math
from collections.abc import Hashable

LATELY_SECONDS = 1.0
"""For so long after a small job's call large ones give way: calls of one and the same job are closer together."""
GROUP = 10
"""Calls of a kind of which the mean is taken: a single one may take thrice as long as another for no reason."""
SLOWED, QUICK = 3.0, 2.0
"""Answers are compared with the quickest recent ones. If they take more than SLOWED times as long, a large job makes
fewer calls. Below QUICK times, it makes more. Smaller differences may be chance."""
FEWER, MORE = 0.6, 1.5
"""By what its share is multiplied then, after each group of calls."""
FIRST_SHARE = 1.0
"""What a large job begins with when a small one comes: a server with cores to spare has it at 25 within half a
second."""
SMALLEST_SHARE = 0.5
"""A call, and a pause as long as it took. Longer ones bring small jobs next to nothing, and the large one its pods ever
later."""
REMEMBERED_SECONDS = 60.0
"""How long the quickest answers are remembered, once or twice this: an API server may become slower for good."""


class GivingWay:
    """The share of a large job, in calls under way, `most` at most. `now` and all durations are in seconds, of one
    clock throughout."""

    def __init__(self, most: int) -> None:
        self._most, self._share = most, FIRST_SHARE
        self._asked = -math.inf
        self._groups: dict[Hashable, list[float]] = {}
        self._quickest: dict[Hashable, float] = {}
        self._quickest_before: dict[Hashable, float] = {}
        self._remembering_since = -math.inf

    def asked(self, now: float) -> None:
        """Note that a small job makes a call."""
        if not self._is_asked(now):
            self._share = FIRST_SHARE
            self._groups.clear()
        self._asked = now

    def answered(self, kind: Hashable, took: float, now: float) -> None:
        """Note how long a call took that was well answered, whosever it was. It is held against those of its kind
        alone: a pod may pass through a webhook that takes longer than all the rest."""
        self._forget_old(now)
        group = self._groups.setdefault(kind, [])
        group.append(took)
        if len(group) < GROUP:
            return
        mean = sum(group) / GROUP
        group.clear()
        self._quickest[kind] = min(self._quickest.get(kind, math.inf), mean)
        slowed = mean / min(self._quickest[kind], self._quickest_before.get(kind, math.inf))
        if self._is_asked(now) and not QUICK <= slowed <= SLOWED:
            share = self._share * (MORE if slowed < QUICK else FEWER)
            self._share = min(max(share, SMALLEST_SHARE), self._most)

    def share(self, now: float) -> float:
        """Calls that a large job may have under way, all of them where nobody asks for less; below 1 it rests between
        two."""
        return self._share if self._is_asked(now) else self._most

    def _is_asked(self, now: float) -> bool:
        return now - self._asked <= LATELY_SECONDS

    def _forget_old(self, now: float) -> None:
        if now - self._remembering_since > REMEMBERED_SECONDS:
            self._quickest_before, self._quickest = self._quickest, {}
            self._groups.clear()
            self._remembering_since = now
