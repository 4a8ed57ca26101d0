# SPDX-License-Identifier: Apache-2.0
"""The work queue, in simulated time."""

import asyncio
from typing import Any

import pytest

from dtjob.controller.pace.workqueue import FIRST_IN_A_ROW, RETRY, WorkQueue
from tests.unit.operator.simulation.time import simulated


async def taken(queue: WorkQueue[str], seconds: float = 1) -> list[str]:
    """The keys that come within so many seconds; each is done at once."""
    keys = []
    end = asyncio.get_running_loop().time() + seconds
    while (left := end - asyncio.get_running_loop().time()) > 1e-3:
        try:
            async with asyncio.timeout(left):
                key = await queue.get()
        except TimeoutError:
            break
        queue.done(key)
        keys.append(key)
    return keys


@simulated
async def test_a_key_is_queued_once():
    queue = WorkQueue[str]()
    for key in "aabab":
        queue.add(key)
    assert len(queue) == 2
    assert await taken(queue) == ["a", "b"]


@simulated
async def test_keys_with_priority_go_first_and_the_others_still_get_turns():
    queue = WorkQueue[str](str.isupper)
    for key in ("a", "b", *(f"N{number}" for number in range(2 * FIRST_IN_A_ROW + 1))):
        queue.add(key)
    assert len(queue) == queue.at_hand == 2 * FIRST_IN_A_ROW + 3
    order = await taken(queue)
    assert [order.index(key) for key in "ab"] == [FIRST_IN_A_ROW, 2 * FIRST_IN_A_ROW + 1]
    assert [key for key in order if key.isupper()] == [f"N{number}" for number in range(2 * FIRST_IN_A_ROW + 1)]


@simulated
async def test_a_key_that_waits_may_come_to_go_first():
    """A job's pod fails while it is due for something else."""
    hurt: set[str] = set()
    queue = WorkQueue[str](hurt.__contains__)
    for key in "abc":
        queue.add(key)
    hurt.add("c")
    for _ in range(2):
        queue.add("c")
    assert len(queue) == 3
    assert await taken(queue) == ["c", "a", "b"]


@simulated
async def test_the_priority_of_a_key_is_read_when_it_is_due():
    hurt = {"z"}
    queue = WorkQueue[str](hurt.__contains__)
    for key in "abz":
        queue.add(key)
    assert await queue.get() == "z"
    hurt.clear()
    queue.add("z")  # while a worker has it
    queue.done("z")
    assert await taken(queue) == ["a", "b", "z"]


@simulated
async def test_a_key_is_never_with_two_workers():
    """Else every pod would be created several times."""
    queue = WorkQueue[str]()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert await taken(queue) == []
    queue.done("a")
    assert await taken(queue) == ["a"]


@simulated
async def test_a_key_that_is_due_wakes_one_worker_and_not_all(monkeypatch: pytest.MonkeyPatch):
    """Twenty wait for most of the time."""
    queue, steps, loop = WorkQueue[str](), 0, asyncio.get_running_loop()
    call_soon = loop.call_soon

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal steps
        steps += 1
        return call_soon(*arguments, **options)

    workers = [asyncio.ensure_future(queue.get()) for _ in range(20)]
    await asyncio.sleep(1)
    monkeypatch.setattr(loop, "call_soon", counted)
    queue.add("a")
    await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
    assert steps < 20
    for worker in workers:
        worker.cancel()


@simulated
async def test_a_later_time_wakes_a_waiting_worker():
    queue = WorkQueue[str]()
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(1)
    queue.add_after("a", 600)
    await asyncio.sleep(599)
    assert not waiting.done()
    await asyncio.sleep(1.1)
    assert waiting.result() == "a"


@simulated
async def test_a_key_has_one_later_time_the_earliest():
    queue = WorkQueue[str]()
    for seconds in (30, 10, 20, 10.5):
        queue.add_after("a", seconds)
    assert await taken(queue, 9) == []
    assert await taken(queue, 60) == ["a"]
    queue.add_after("a", 5)
    assert await taken(queue, 6) == ["a"]


@simulated
async def test_retries_wait_longer_each_time_until_one_does_well():
    queue = WorkQueue[str]()
    waits = [queue.retry("a") for _ in range(12)]
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(0.1)
    assert waits[-1] == RETRY.longest
    queue.forget("a")
    assert queue.retry("a") == pytest.approx(0.1)


@simulated
async def test_a_retry_waits_for_the_given_time_up_to_a_limit():
    queue = WorkQueue[str]()
    assert queue.retry("a", 2) == 2
    assert queue.retry("a", 1e9) == RETRY.longest
    began = asyncio.get_running_loop().time()
    assert await queue.get() == "a"
    assert asyncio.get_running_loop().time() - began == pytest.approx(2)


@pytest.mark.parametrize("turns", range(4))
@simulated
async def test_a_cancelled_worker_ends_though_a_key_comes_at_the_same_moment(turns: int):
    """Python 3.11's asyncio.wait_for swallows such a cancellation; the operator would never end."""
    queue = WorkQueue[str]()

    async def work() -> None:
        while True:
            queue.done(await queue.get())

    queue.add_after("b", 1000)
    worker = asyncio.ensure_future(work())
    await asyncio.sleep(1)
    queue.add("a")
    for _ in range(turns):
        await asyncio.sleep(0)
    worker.cancel()
    await asyncio.wait([worker], timeout=5)
    assert worker.cancelled()


@simulated
async def test_a_key_added_in_a_burst_is_due_at_once_and_once_more_after_it():
    queue = WorkQueue[str]()
    queue.add_gathered("a", 0.5)
    assert await taken(queue, 0.01) == ["a"]
    for _ in range(40):
        queue.add_gathered("a", 0.5)
        assert await taken(queue, 0.01) == []
    queue.add_gathered("b", 0.5)  # another's
    assert await taken(queue, 0.01) == ["b"]
    assert await taken(queue, 1) == ["a"]


@simulated
async def test_a_gathered_key_with_a_settling_time_is_due_once_after_that_time():
    queue = WorkQueue[str]()
    queue.add("b")
    assert await taken(queue, 0.01) == ["b"]
    for _ in range(5):
        queue.add_gathered("a", 0.5, settle=0.1)
        assert await taken(queue, 0.01) == []
    assert await taken(queue, 0.06) == ["a"]  # 0.1 s after the first


def test_a_key_added_before_an_event_loop_runs_is_due_at_once():
    queue = WorkQueue[str]()
    queue.add_gathered("a", 0.5, settle=0.1)  # where no event loop runs
    assert len(queue) == 1


@simulated
async def test_the_time_is_counted_from_when_the_work_ended():
    queue = WorkQueue[str]()
    queue.add("a")
    assert await queue.get() == "a"
    await asyncio.sleep(3)
    queue.done("a")
    queue.add_gathered("a", 0.5)
    assert await taken(queue, 0.4) == []
    assert await taken(queue, 0.2) == ["a"]
