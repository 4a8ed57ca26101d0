# SPDX-License-Identifier: Apache-2.0
"""Everything that can befall every call in every story, and lives for it, side by side on one API server."""

import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue

from tests.cluster.crashes.faults import KILLS, Step, What, faults_of
from tests.cluster.crashes.outcome import Outcome
from tests.cluster.crashes.slot import Played, Slot

TOGETHER = 8
"""Lives under one operator: what befalls a call of one job is nothing to the others."""
START_OF = ("plain", "queued and preempted", "in a gang of Volcano")
"""Stories in which each LIST, and the beginning of each watch, fails: an operator starts in the same way in all."""
WATCHED = ("pods", "distributedtrainingjobs", "workloads", "podgroups")
"""Kinds whose events have a watch fail in each story; that of any other kind does in the first story."""


def undisturbed(slots: Sequence[Slot], stories: Iterable[str]) -> dict[str, Played]:
    """Each story without a fault. Raises AssertionError where it does not come to its end."""
    first = {story: Played(story) for story in stories}
    play(slots, [[life] for life in first.values()], {})
    wrong = {life.story: life.wrong for life in first.values() if life.wrong}
    assert not wrong, wrong
    return first


def product(undisturbed: dict[str, Played]) -> list[Played]:
    """All that can befall each step of these lives."""
    found: dict[tuple[str, Step, What], Played] = {}
    for story, life in undisturbed.items():
        for step in life.steps:
            for what in _kills(step) + _faults(story, step):
                found.setdefault((story, step, what), Played(story, step, what))
    return list(found.values())


def _kills(step: Step) -> tuple[What, ...]:
    if step.event >= 0 or not (step.job or step.n == 1):  # a watch begins anew with time, and not with what happens
        return ()
    return KILLS if step.changes and step.resource != "events" else (What.KILLED,)


def _faults(story: str, step: Step) -> tuple[What, ...]:
    whole = story in START_OF if step.event < 0 else story == START_OF[0] or step.resource in WATCHED
    return faults_of(step) if step.job or (whole and step.n == 1) else ()


def part(lives: Iterable[Played], number: int, parts: int) -> list[Played]:
    """The part of this number, from 1, of so many: always the same lives."""
    return [life for life in lives if zlib.crc32(str(life).encode()) % parts == number - 1]


def batches(lives: Iterable[Played]) -> list[list[Played]]:
    """Lives that share an operator: what befalls it as a whole befalls one life."""
    alone, shared = list[list[Played]](), list[Played]()
    for life in lives:
        if life.step is not None and life.step.job and life.what not in KILLS:
            shared.append(life)
        else:
            alone.append([life])
    return [*alone, *(shared[n : n + TOGETHER] for n in range(0, len(shared), TOGETHER))]


def play(
    slots: Sequence[Slot],
    some_batches: Iterable[list[Played]],
    wanted: dict[str, Outcome],
    tell: Callable[[list[Played]], None] = lambda batch: None,
) -> None:
    """Play all of them, and `tell` of each batch when it is over."""
    queue, turn = SimpleQueue[list[Played]](), threading.Lock()
    for batch in some_batches:
        queue.put(batch)

    def work(slot: Slot) -> None:
        while True:
            try:
                batch = queue.get_nowait()
            except Empty:
                return
            slot.play(batch, wanted)
            with turn:
                tell(batch)

    with ThreadPoolExecutor(len(slots)) as pool:
        list(pool.map(work, slots))


class Report:
    """Says how far it is, and what was found."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._began = total, 0, time.monotonic()
        self.wrong: list[Played] = []
        self.missed: list[Played] = []
        """Lives in which the step never came: another order of calls."""
        self.by_what: Counter[str] = Counter()

    def __call__(self, batch: list[Played]) -> None:
        """Take in these lives."""
        for life in batch:
            self._done += 1
            self.by_what[str(life.what)] += life.struck
            if life.wrong:
                self.wrong.append(life)
                print("WRONG", life, *life.wrong, sep="\n    ", flush=True)
            if not life.struck:
                self.missed.append(life)
            if self._done % 20 == 0:
                print(self, flush=True)

    def __str__(self) -> str:
        minutes = (time.monotonic() - self._began) / 60
        lives = f"{self._done} of {self._total} lives in {minutes:.1f} min"
        return f"{lives}: {len(self.wrong)} wrong, {len(self.missed)} without the step; {dict(self.by_what)}"
