# SPDX-License-Identifier: Apache-2.0
"""Work queue: which job is due, with the semantics of client-go's util/workqueue.

A key is in the queue at most once, and is never given to two workers at a time. If two workers had it, every pod would
be created several times. A key that is added while a worker has it is queued again when the worker is done.

Unlike there, some keys go before others: a job that trains and has lost a pod need not wait for hundreds of new ones.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from dtjob.controller.pace.backoff import Backoff
from dtjob.controller.pace.pace import LONGEST_GATHER_SECONDS

Key = TypeVar("Key", bound=Hashable)

RETRY = Backoff(0.1, 60.0)
FIRST_IN_A_ROW = 15
"""So many keys that go first are taken for each of the others, which must not wait for ever."""


class WorkQueue(Generic[Key]):
    """The queue. For one event loop; not thread-safe."""

    def __init__(self, goes_first: Callable[[Key], bool] = lambda key: False) -> None:
        """`goes_first`: whether a key that is due now goes before the others."""
        self._goes_first = goes_first
        self._first: OrderedDict[Key, None] = OrderedDict()
        self._others: OrderedDict[Key, None] = OrderedDict()
        self._in_a_row = 0
        self._dirty: set[Key] = set()
        self._processing: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._later: dict[Key, asyncio.TimerHandle] = {}
        self._looked_at: OrderedDict[Key, float] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turns = asyncio.Queue[None]()
        """One for each key that is due, so that one worker wakes for it and not all."""

    def add(self, key: Key) -> None:
        """Make the key due now; one that was due already may go first by now."""
        if key in self._dirty:
            if key in self._others and self._goes_first(key):
                del self._others[key]
                self._append(key)
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._append(key)
            self._turns.put_nowait(None)

    def add_after(self, key: Key, seconds: float) -> None:
        """Make the key due in so many seconds, unless it will be earlier than that.

        One time for each key, the earliest, as in client-go: whoever is woken too early says again when to wake it. If
        all were kept, a job that asks for a later look each time it is looked at would be woken ever more often.
        """
        if seconds <= 0:
            self.add(key)
            return
        loop = self._event_loop()
        due, known = loop.time() + seconds, self._later.get(key)
        if known is None or due < known.when():
            if known is not None:
                known.cancel()
            self._later[key] = loop.call_at(due, self._make_due, key)

    def add_gathered(self, key: Key, seconds: float, settle: float = 0.0) -> None:
        """Make the key due so many seconds after a worker last took it or gave it back, and no sooner than in `settle`
        seconds.

        What comes in a burst makes the key due once and not each time; what comes alone waits to `settle` and no
        longer. Longer than LONGEST_GATHER_SECONDS nothing is gathered.
        """
        if self._loop is None:  # no worker has asked for a key yet
            self.add(key)
            return
        looked_at = self._looked_at.get(key)
        wait = 0.0 if looked_at is None else looked_at + seconds - self._loop.time()
        self.add_after(key, max(wait, settle))

    def retry(self, key: Key, at_least: float = 0.0) -> float:
        """Make a key that failed due again, later each time: in `at_least` seconds at the earliest, and after the
        longest wait at the latest. Returns the seconds until then."""
        self._failures[key] = self.failures(key) + 1
        seconds = min(max(RETRY.after(self._failures[key]), at_least), RETRY.longest)
        self.add_after(key, seconds)
        return seconds

    def failures(self, key: Key) -> int:
        """How often in a row the key has failed."""
        return self._failures.get(key, 0)

    def forget(self, key: Key) -> None:
        """Note that the key did well, so that its next failure waits the shortest time again."""
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """The next due key, which is this worker's until `done`."""
        self._event_loop()
        await self._turns.get()
        key = self._pop()
        self._dirty.discard(key)
        self._processing.add(key)
        self._note_look(key)
        return key

    def done(self, key: Key) -> None:
        """Give the key back; if it was added meanwhile, it is due again."""
        self._processing.discard(key)
        self._note_look(key)
        if key in self._dirty:
            self._append(key)
            self._turns.put_nowait(None)

    def __len__(self) -> int:
        """How many keys are due now."""
        return len(self._first) + len(self._others)

    @property
    def at_hand(self) -> int:
        """How many keys are due, or with a worker."""
        return len(self) + len(self._processing)

    def _append(self, key: Key) -> None:
        (self._first if self._goes_first(key) else self._others)[key] = None

    def _pop(self) -> Key:
        if self._first and not (self._others and self._in_a_row >= FIRST_IN_A_ROW):
            self._in_a_row += 1
            return self._first.popitem(last=False)[0]
        self._in_a_row = 0
        return self._others.popitem(last=False)[0]

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _note_look(self, key: Key) -> None:
        now = self._event_loop().time()
        self._looked_at[key] = now
        self._looked_at.move_to_end(key)
        while (oldest := next(iter(self._looked_at))) != key and self._looked_at[oldest] < now - LONGEST_GATHER_SECONDS:
            del self._looked_at[oldest]

    def _make_due(self, key: Key) -> None:
        del self._later[key]
        self.add(key)
