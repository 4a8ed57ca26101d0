# SPDX-License-Identifier: Apache-2.0
"""Loops that end are begun again."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator

import pytest

from dtjob.kube.watching.informer import VersionsWentBack
from dtjob.kube.watching.loops import PAUSE, WELL_AFTER_SECONDS, keep_running
from tests.unit.operator.simulation.time import SimulatedLoop


@pytest.fixture
def loop() -> Iterator[SimulatedLoop]:
    loop = SimulatedLoop()
    yield loop
    loop.close()


class Loop:
    """A loop that ends after so many seconds, in a way; and when it began."""

    def __init__(self, how: str, seconds: float = 0.0) -> None:
        self.how, self.seconds, self.began = how, seconds, list[float]()
        self.cancelled = 0

    async def __call__(self) -> None:
        self.began.append(asyncio.get_running_loop().time())
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.how == "raises":
            raise KeyError("training.dtjob.dev/role")
        if self.how == "is cancelled by somebody":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)


def began(loop: SimulatedLoop, run: Loop, seconds: float) -> list[float]:
    async def story() -> None:
        keeping = asyncio.create_task(keep_running("reports", run))
        await asyncio.sleep(seconds)
        assert not keeping.done()
        keeping.cancel()
        await asyncio.wait([keeping])
        assert keeping.cancelled()

    loop.run_until_complete(story())
    return run.began


@pytest.mark.parametrize("how", ["raises", "returns", "is cancelled by somebody"])
def test_a_loop_that_ends_begins_again_ever_later(
    loop: SimulatedLoop, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        moments = began(loop, Loop(how), 100)
    assert [later - earlier for earlier, later in itertools.pairwise(moments)] == pytest.approx(
        [1, 2, 4, 8, 16, PAUSE.longest, PAUSE.longest], abs=0.05
    )
    assert "reports ended" in caplog.text
    assert ("training.dtjob.dev/role" in caplog.text) == (how == "raises")


def test_a_loop_that_ran_well_for_long_begins_again_after_the_shortest_wait(loop: SimulatedLoop) -> None:
    moments = began(loop, Loop("raises", WELL_AFTER_SECONDS + 1), 1000)
    assert moments[-1] - moments[-2] == pytest.approx(WELL_AFTER_SECONDS + 2, abs=0.05)


async def test_a_loop_that_finds_that_etcd_was_restored_is_not_begun_again() -> None:
    async def run() -> None:
        raise VersionsWentBack("the list of Pods is of version 59")

    with pytest.raises(VersionsWentBack):
        await keep_running("Pods", run)


def test_a_loop_ends_when_the_task_that_runs_it_is_cancelled(loop: SimulatedLoop) -> None:
    run = Loop("raises", 1000)
    began(loop, run, 10)
    assert (len(run.began), run.cancelled) == (1, 1)
