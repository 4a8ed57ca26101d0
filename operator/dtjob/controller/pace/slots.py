# SPDX-License-Identifier: Apache-2.0
"""Calls under way at once, over all jobs and of each: the jobs that wait are served in turn.

If calls were served as they come, a small job would wait behind every call of a big one's thousand pods. It would wait
again at each of its own. Turns alone do not help, because calls under way queue in the API server. So one job has only
a few calls there, as many as keep an API server busy. While small jobs make theirs, it has fewer (`giving_way.py`).
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from dtjob.controller.cluster import JobKey
from dtjob.controller.pace.giving_way import LATELY_SECONDS, GivingWay

CALLS_AT_ONCE = 50
"""Calls under way over all jobs: about what one API server takes without queueing."""
CALLS_OF_A_JOB = 25
"""Of these, one job's: with calls of 60 ms 400 a second, about what this process can make."""
LONGEST_REST_SECONDS = 1.0
"""Between two calls of a large job that gives way to small ones, however long the first took."""


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

    def of(self, key: JobKey, kind: str) -> "_Slot":
        """A slot for a call of this job, to be held by `async with`. Calls of one `kind` take equally long in the same
        namespace."""
        return _Slot(self, key, (key[0], kind))

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


class _Slot:
    """A slot while it is held."""

    def __init__(self, slots: Slots, key: JobKey, kind: Hashable) -> None:
        self._slots, self._key, self._kind = slots, key, kind
        self._used = True

    def leave_unused(self) -> None:
        """Note that no call was made: it tells nothing of the API server."""
        self._used = False

    async def __aenter__(self) -> Self:
        await self._slots.acquire(self._key)
        self._began = _now()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        took = _now() - self._began
        try:
            if not self._used:
                return
            if error is None:  # what failed may have failed at once
                self._slots.answered(self._kind, took)
            if rest := self._slots.rest(self._key, took):
                await asyncio.sleep(rest)
        finally:
            self._slots.release(self._key)


def _now() -> float:
    return asyncio.get_running_loop().time()
