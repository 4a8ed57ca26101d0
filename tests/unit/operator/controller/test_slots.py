"""Calls at once: bounds, turns, and what becomes of them when somebody stops waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dtjob.controller.slots import Slots

LARGE, SMALL, OTHER = ("default", "large"), ("default", "small"), ("default", "other")
Holding = Callable[..., Awaitable[None]]


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
        async with self._slots.of(key):
            self.began.append(key)
            ending = asyncio.Event()
            self._ends.append(ending)
            await ending.wait()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_job_has_its_share_and_all_have_no_more_than_all() -> None:
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


async def test_who_has_its_share_holds_up_nobody() -> None:
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
async def test_who_is_cancelled_takes_no_slot_along(turn_has_come: bool) -> None:
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
