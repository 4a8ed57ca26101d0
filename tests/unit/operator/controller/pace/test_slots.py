# SPDX-License-Identifier: Apache-2.0
"""Calls at once: bounds, turns, and what becomes of them when somebody stops waiting."""

import asyncio
import contextlib

import pytest

from dtjob.controller.cluster import ClusterError
from dtjob.controller.pace.slots import GROUP, SMALLEST_SHARE, Slots

LARGE, SMALL, OTHER = ("default", "large"), ("default", "small"), ("default", "other")
POD = "Create Pod"


class Calls:
    """Calls that last until they are told to end, in the order in which they began."""

    def __init__(self, slots: Slots) -> None:
        self._slots, self.began = slots, list[tuple[str, str]]()
        self.tasks: list[asyncio.Task[None]] = []
        self._ends: list[asyncio.Event] = []

    async def make(self, key: tuple[str, str], number: int = 1) -> None:
        self.tasks += [asyncio.create_task(self._call(key)) for _ in range(number)]
        await settle()

    async def end(self, number: int = 1) -> None:
        """The oldest of those that are under way."""
        for _ in range(number):
            self._ends.pop(0).set()
            await settle()

    @property
    def under_way(self) -> int:
        return len(self._ends)

    async def _call(self, key: tuple[str, str]) -> None:
        async with self._slots.of(key, POD):
            self.began.append(key)
            ending = asyncio.Event()
            self._ends.append(ending)
            await ending.wait()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_calls_at_once_are_bounded_for_each_job_and_for_all_jobs_together() -> None:
    calls = Calls(Slots(at_once=5, of_a_job=3))
    await calls.make(LARGE, 10)
    assert calls.began == [LARGE] * 3
    await calls.make(SMALL, 3)
    assert calls.began == [*[LARGE] * 3, *[SMALL] * 2]


async def test_jobs_that_wait_are_served_in_turn() -> None:
    calls = Calls(Slots(at_once=2, of_a_job=2))
    await calls.make(LARGE, 50)
    await calls.make(SMALL, 3)
    await calls.make(OTHER, 1)
    await calls.end(6)
    assert calls.began[2:] == [LARGE, SMALL, OTHER, LARGE, SMALL, LARGE]


async def test_a_job_with_all_its_slots_in_use_does_not_delay_other_jobs() -> None:
    calls = Calls(Slots(at_once=4, of_a_job=2))
    await calls.make(LARGE, 20)
    await calls.make(SMALL, 5)
    assert calls.began == [LARGE, LARGE, SMALL, SMALL]
    await calls.make(OTHER, 1)
    await calls.end(1)  # one of the large job's: its turn is next, and it may have it again
    assert calls.began[4:] == [LARGE]
    await calls.end(1)
    assert calls.began[5:] == [OTHER]


async def test_all_slots_come_back() -> None:
    slots = Slots(at_once=3, of_a_job=2)
    calls = Calls(slots)
    for key in (LARGE, SMALL, OTHER):
        await calls.make(key, 7)
    while calls.under_way:
        await calls.end()
    assert len(calls.began) == 21
    await calls.make(LARGE, 2)
    await calls.make(SMALL, 2)
    assert calls.under_way == 3


@pytest.mark.parametrize("turn_has_come", [False, True], ids=["waiting", "just served"])
async def test_a_cancelled_call_leaves_its_slot_to_others(turn_has_come: bool) -> None:
    calls = Calls(Slots(at_once=1, of_a_job=1))
    await calls.make(LARGE, 1)
    await calls.make(SMALL, 1)
    if turn_has_come:
        calls._ends.pop(0).set()
        await asyncio.sleep(0)  # the slot is given back, and the other has not been woken yet
    calls.tasks[1].cancel()
    await settle()
    if not turn_has_come:
        await calls.end()
    await calls.make(OTHER, 1)
    assert calls.began == [LARGE, OTHER]


async def test_a_large_job_gives_way_while_a_small_one_makes_calls() -> None:
    slots = Slots(at_once=8, of_a_job=5)
    calls = Calls(slots)
    with slots.calls(LARGE, 100):
        await calls.make(LARGE, 100)
        assert calls.began == [LARGE] * 5
        await calls.make(SMALL, 1)
        assert calls.began[5:] == [SMALL]
        await calls.end(4)
        assert calls.began[6:] == []  # of five calls the large one has one under way now
        await calls.end(1)
        assert calls.began[6:] == [LARGE]


async def test_jobs_that_are_both_large_do_not_give_way_to_each_other() -> None:
    slots = Slots(at_once=8, of_a_job=4)
    calls = Calls(slots)
    with slots.calls(LARGE, 100), slots.calls(OTHER, 100):
        await calls.make(LARGE, 100)
        await calls.make(OTHER, 100)
        await calls.end(8)
        assert calls.under_way == 8


async def test_beside_many_small_jobs_a_large_one_has_half_as_many_calls_as_they() -> None:
    slots = Slots(at_once=20, of_a_job=10)
    calls = Calls(slots)
    with slots.calls(LARGE, 100):
        for number in range(8):
            await calls.make(("default", f"small-{number}"), 1)
        await calls.make(LARGE, 100)
        assert calls.began.count(LARGE) == 4


async def test_a_job_that_has_made_its_many_calls_is_no_large_one_any_more() -> None:
    slots = Slots(at_once=8, of_a_job=5)
    calls = Calls(slots)
    with slots.calls(LARGE, 100):
        await calls.make(SMALL, 1)
    await calls.make(LARGE, 5)
    assert calls.began[1:] == [LARGE] * 5


def took(slots: Slots, seconds: float, calls: int = GROUP) -> None:
    for _ in range(calls):
        slots.answered(("default", POD), seconds)


async def test_a_large_job_that_gives_way_rests_after_a_call_that_was_slow() -> None:
    slots = Slots(at_once=8, of_a_job=5)
    quick, slow = 0.01, 0.04
    with slots.calls(LARGE, 100):
        took(slots, quick)
        assert not slots.rest(LARGE, quick)
        async with slots.of(SMALL, POD):
            pass
        took(slots, slow, 2 * GROUP)
        assert slots.rest(LARGE, slow) == pytest.approx(slow * (1 / SMALLEST_SHARE - 1))
        assert not slots.rest(SMALL, slow)


@pytest.mark.parametrize("used", [False, True], ids=["not made", "failed"])
async def test_a_call_that_was_not_answered_tells_nothing_of_how_quick_answers_are(used: bool) -> None:
    """Of an API server that starts again every call fails at once."""
    slots = Slots(at_once=8, of_a_job=5)
    with slots.calls(LARGE, 100):
        for _ in range(GROUP):
            with contextlib.suppress(ClusterError):
                async with slots.of(SMALL, POD) as slot:
                    if used:
                        raise ClusterError("connection refused")
                    slot.used = False
        took(slots, 0.01, 5 * GROUP)
        assert not slots.rest(LARGE, 0.01)
        calls = Calls(slots)
        await calls.make(LARGE, 5)
        assert calls.under_way == 5


async def test_a_large_job_whose_one_call_hangs_goes_on_once_small_ones_make_no_more() -> None:
    slots = Slots(at_once=8, of_a_job=5)
    calls = Calls(slots)
    with slots.calls(LARGE, 100):
        async with slots.of(SMALL, POD):
            pass
        await calls.make(LARGE, 100)
        assert calls.under_way == 1
        async with asyncio.timeout(30):
            while calls.under_way < 5:
                await asyncio.sleep(0.01)
