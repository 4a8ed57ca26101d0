# SPDX-License-Identifier: Apache-2.0
"""Calls under way at once, over all jobs and of each: the jobs that wait are served in turn.

If calls were served as they come, a small job would wait behind every call of a big one's thousand pods. It would wait
again at each of its own. Turns alone do not help, because calls under way queue in the API server. So one job has only
a few calls there, as many as keep an API server busy. While small jobs make calls, large ones use only what the API
server has to spare. Its answers are compared with the quickest recent ones, as TCP Vegas measures a network's queues.
An API server with cores to spare is asked as much as ever. A large job alone is not limited.
"""

import asyncio
import math
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from dtjob.controller.cluster import JobKey

CALLS_AT_ONCE = 50
"""Calls under way over all jobs: about what one API server takes without queueing."""
CALLS_OF_A_JOB = 25
"""Of these, one job's: with calls of 60 ms 400 a second, about what this process can make."""
LONGEST_REST_SECONDS = 1.0
"""Between two calls of a large job that gives way to small ones, however long the first took."""


@dataclass
class Slot:
    """A slot while it is held. `used` False: no call was made, which tells nothing of the API server."""

    used: bool = True


class Slots:
    """At most `at_once` calls, and at most `of_a_job` of each job. For one event loop; not thread-safe."""

    def __init__(self, at_once: int = CALLS_AT_ONCE, of_a_job: int = CALLS_OF_A_JOB) -> None:
        self._free, self._of_a_job = at_once, of_a_job
        self._held: Counter[JobKey] = Counter()
        self._large: Counter[JobKey] = Counter()
        """Jobs that make many calls."""
        self._way = GivingWay(of_a_job)
        self._waiting: OrderedDict[JobKey, deque[asyncio.Future[None]]] = OrderedDict()
        """The jobs in the order in which they are served, with who waits of each."""
        self._looks_again = False

    @asynccontextmanager
    async def of(self, key: JobKey, kind: str) -> AsyncIterator[Slot]:
        """A slot for a call of this job. Calls of one `kind` take equally long in the same namespace."""
        await self.acquire(key)
        slot, began = Slot(), _now()
        try:
            yield slot
            if slot.used:  # what failed may have failed at once
                self.answered((key[0], kind), _now() - began)
        finally:
            try:
                if slot.used and (rest := self.rest(key, _now() - began)):
                    await asyncio.sleep(rest)
            finally:
                self.release(key)

    @contextmanager
    def calls(self, key: JobKey, number: int) -> Iterator[None]:
        """While so many calls of this job are made, of more than it may have under way it gives way to other jobs."""
        if number <= self._of_a_job:
            yield
            return
        self._large[key] += 1
        try:
            yield
        finally:
            self._large[key] -= 1
            self._large += Counter()  # without those that are at nought

    async def acquire(self, key: JobKey) -> None:
        """Wait for a slot. Whoever has one gives it back by `release`."""
        if key not in self._large:
            self._way.asked(_now())
        if self._free and self._held[key] < self._most(key):
            self._take(key)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        self._look_again()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # its turn came, and with it the cancellation
                self.release(key)
            raise

    def answered(self, kind: Hashable, took: float) -> None:
        """Note that a call was well answered, after so many seconds."""
        self._way.answered(kind, took, _now())

    def rest(self, key: JobKey, took: float) -> float:
        """For how many seconds a slot is to be kept whose call has taken so long."""
        share = self._share(key)
        return min(took * (1 / share - 1), LONGEST_REST_SECONDS) if share < 1 else 0.0

    def release(self, key: JobKey) -> None:
        """Give a slot back, to whoever is next."""
        self._free += 1
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]
        self._serve_all()

    def _most(self, key: JobKey) -> int:
        """Calls that the job may have under way now."""
        return max(1, int(self._share(key)))

    def _share(self, key: JobKey) -> float:
        """The same, and less than one where it rests between two. Beside many small jobs, which slow the API server by
        themselves, each large one has half as many calls as all of them."""
        if key not in self._large:
            return self._of_a_job
        of_small = sum(number for job, number in self._held.items() if job not in self._large)
        return min(max(self._way.share(_now()), of_small / 2), self._of_a_job)

    def _look_again(self) -> None:
        """Serve the waiting jobs again later, even if nobody gives a slot back: a large job's only call may hang. If
        small jobs have made their last call by then, the large job may make more."""
        if not self._looks_again:
            self._looks_again = True
            asyncio.get_running_loop().call_later(LATELY_SECONDS / 2, self._looked_again)

    def _looked_again(self) -> None:
        self._looks_again = False
        self._serve_all()
        if self._waiting:
            self._look_again()

    def _serve_all(self) -> None:
        while self._free:
            following = next((key for key in self._waiting if self._held[key] < self._most(key)), None)
            if following is None:
                return
            self._serve(following)

    def _serve(self, key: JobKey) -> None:
        """Give a slot to the first that waits of this job, which comes last from now on."""
        turns = self._waiting.pop(key)
        while turns:
            turn = turns.popleft()
            if not turn.cancelled():
                self._take(key)
                turn.set_result(None)
                break
        if turns:
            self._waiting[key] = turns

    def _take(self, key: JobKey) -> None:
        self._free -= 1
        self._held[key] += 1


def _now() -> float:
    return asyncio.get_running_loop().time()


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
