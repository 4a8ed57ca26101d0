"""The operator's process: how it waits at its start, and that it stops when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtjob.controller.cluster import ClusterError
from dtjob.kube import process
from dtjob.kube.kubeconfig import NoCluster
from tests.unit.operator.simulation.time import SimulatedLoop


@pytest.fixture
def loop() -> Iterator[SimulatedLoop]:
    loop = SimulatedLoop()
    yield loop
    loop.close()


class Lists:
    """A resync that fails so often, and when it was tried."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.tried_at: list[float] = []

    async def __call__(self) -> None:
        self.tried_at.append(asyncio.get_running_loop().time())
        if len(self.tried_at) <= self.failures:
            raise ClusterError("the API server did not answer")


def test_an_api_server_that_is_away_at_the_start_is_waited_for(loop: SimulatedLoop) -> None:
    lists = Lists(9)
    loop.run_until_complete(process._first_resync(lists))
    waits = [later - earlier for earlier, later in zip(lists.tried_at, lists.tried_at[1:], strict=False)]
    assert waits == pytest.approx([0.5, 1, 2, 2, 2, 2, 2, 2, 2], abs=0.01)


def test_the_second_resync_comes_soon_and_one_that_fails_is_tried_again_later_each_time(loop: SimulatedLoop) -> None:
    """Nobody asks anew for what was to be found: a watch that has listed again does so once."""

    async def story() -> list[float]:
        lists = Lists(2)
        resyncs = asyncio.create_task(process._resync_forever(lists, 180, asyncio.Event()))
        await asyncio.sleep(600)
        resyncs.cancel()
        return lists.tried_at

    assert loop.run_until_complete(story()) == pytest.approx([10, 20, 40, 220, 400, 580], abs=0.01)


def test_a_resync_comes_soon_after_a_watch_had_to_list_again(loop: SimulatedLoop) -> None:
    """What was deleted between a watch's end and that LIST brings no event."""

    async def story() -> list[float]:
        lists, listed = Lists(0), asyncio.Event()
        resyncs = asyncio.create_task(process._resync_forever(lists, 180, listed))
        for at in (1.0, 50.0, 53.0, 239.0):  # at the start, twice together, and just before a resync that comes anyway
            asyncio.get_running_loop().call_later(at, listed.set)
        await asyncio.sleep(400)
        resyncs.cancel()
        return lists.tried_at

    assert loop.run_until_complete(story()) == pytest.approx([10, 60, 240], abs=0.01)


@pytest.mark.parametrize(("stopped_after", "done"), [(10.0, True), (3.0, False)])
def test_work_is_given_up_where_the_process_is_told_to_stop(
    loop: SimulatedLoop, stopped_after: float, done: bool
) -> None:
    async def story() -> tuple[bool, bool]:
        stop, cancelled = asyncio.Event(), False

        async def work() -> None:
            nonlocal cancelled
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                cancelled = True
                raise

        asyncio.get_running_loop().call_later(stopped_after, stop.set)
        return await process._unless_stopped(stop, work()), cancelled

    assert loop.run_until_complete(story()) == (done, not done)


def test_an_error_of_the_work_is_not_swallowed(loop: SimulatedLoop) -> None:
    async def fail() -> None:
        raise ValueError("a bug")

    async def story() -> None:
        await process._unless_stopped(asyncio.Event(), fail())

    with pytest.raises(ValueError, match="a bug"):
        loop.run_until_complete(story())


async def test_without_a_cluster_it_says_so(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("{}")
    with pytest.raises(NoCluster):
        await process.run(process.Options(kubeconfig=str(kubeconfig), resync_seconds=180, report_seconds=5))


async def test_a_kueue_that_does_not_answer_holds_up_no_start(caplog: pytest.LogCaptureFixture) -> None:
    await process._kueue_aside(Lists(1))
    assert "Workloads are not listed: the API server did not answer" in caplog.text
