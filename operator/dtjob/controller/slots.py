"""Calls under way at once, over all jobs and of each: the jobs that wait are served in turn.

Were calls served as they come, a small job would wait behind every call of a big one's thousand pods, and again at each
of its own. Its turn alone would not help: what is under way queues in the API server, so that one job has but a few
calls there, as many as keep an API server busy.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from types import TracebackType

from dtjob.controller.cluster import JobKey

CALLS_AT_ONCE = 50
"""Calls under way over all jobs: about what one API server takes without queueing."""
CALLS_OF_A_JOB = 25
"""Of these, one job's. Where a call takes 25 ms they are 400 a second, about what this process can make."""


class Slots:
    """At most `at_once` calls, and at most `of_a_job` of each job. For one event loop; not thread-safe."""

    def __init__(self, at_once: int = CALLS_AT_ONCE, of_a_job: int = CALLS_OF_A_JOB) -> None:
        self._free, self._of_a_job = at_once, of_a_job
        self._held: Counter[JobKey] = Counter()
        self._waiting: OrderedDict[JobKey, deque[asyncio.Future[None]]] = OrderedDict()
        """The jobs in the order in which they are served, with who waits of each."""

    def of(self, key: JobKey) -> _Slot:
        """A slot for a call of this job, to be held by `async with`."""
        return _Slot(self, key)

    async def acquire(self, key: JobKey) -> None:
        """Wait for a slot. Whoever has one gives it back by `release`."""
        if self._free and self._held[key] < self._of_a_job:
            self._take(key)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # its turn came, and with it the cancellation
                self.release(key)
            raise

    def release(self, key: JobKey) -> None:
        """Give a slot back, to whoever is next."""
        self._free += 1
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]
        while self._free and (following := self._next()) is not None:
            self._serve(following)

    def _next(self) -> JobKey | None:
        return next((key for key in self._waiting if self._held[key] < self._of_a_job), None)

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

    def __init__(self, slots: Slots, key: JobKey) -> None:
        self._slots, self._key = slots, key

    async def __aenter__(self) -> None:
        await self._slots.acquire(self._key)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._slots.release(self._key)
