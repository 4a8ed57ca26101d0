# SPDX-License-Identifier: Apache-2.0
"""The operator's process: how it waits at its start, and that it stops when it is told to."""

import asyncio
import itertools
import logging
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from dtjob.controller.cluster import ClusterError
from dtjob.kube import process
from dtjob.kube.process import LOOP_AGAIN, WELL_AFTER_SECONDS, keep_running
from dtjob.kube.watching.informer import VersionsWentBack
from tests.unit.operator.kube.waiting import going_on
from tests.unit.operator.simulation.time import simulated


class Lists:
    """A resync that fails so often, and when it was tried."""

    def __init__(self, failures: int, retry_after: float = 0.0) -> None:
        self.failures = failures
        self.error = ClusterError("the API server did not answer")
        self.error.retry_after = retry_after
        self.tried_at: list[float] = []

    async def __call__(self, children: bool = False) -> None:
        self.tried_at.append(asyncio.get_running_loop().time())
        if len(self.tried_at) <= self.failures:
            raise self.error


async def resync_for(seconds: float, resync: Callable[[bool], Awaitable[None]]) -> None:
    """Each 180 s."""
    async with going_on(process._resync_forever(resync, 180)):  # type: ignore[arg-type]
        await asyncio.sleep(seconds)


@simulated
async def test_an_api_server_that_is_away_at_the_start_is_waited_for() -> None:
    lists = Lists(9)
    await process._first_resync(lists)
    waits = [later - earlier for earlier, later in zip(lists.tried_at, lists.tried_at[1:], strict=False)]
    assert waits == pytest.approx([0.5, 1, 2, 2, 2, 2, 2, 2, 2], abs=0.01)


@simulated
async def test_an_api_server_that_says_when_to_ask_again_is_asked_then() -> None:
    first, later = Lists(1, retry_after=30), Lists(1, retry_after=40)
    await process._first_resync(first)
    assert first.tried_at == pytest.approx([0, 30], abs=0.01)
    await resync_for(230, later)
    assert later.tried_at == pytest.approx([210, 250], abs=0.01)


@simulated
async def test_resyncs_come_at_their_times_and_one_that_fails_is_tried_again_later_each_time() -> None:
    lists = Lists(3)
    await resync_for(600, lists)
    assert lists.tried_at == pytest.approx([180, 190, 210, 250, 430], abs=0.01)


@simulated
async def test_jobs_are_listed_at_each_resync_and_their_pods_once_an_hour() -> None:
    """A LIST of pods that fails is made again at the next try."""
    asked: list[tuple[float, bool]] = []

    async def resync(children: bool) -> None:
        asked.append((asyncio.get_running_loop().time(), children))
        if len([one for one in asked if one[1]]) == 1:
            raise ClusterError("the API server did not answer")

    await resync_for(2 * 3600 + 400, resync)
    assert len(asked) == 43
    assert [moment for moment, children in asked if children] == pytest.approx([3600, 3610, 7210], abs=0.1)


@pytest.mark.parametrize(("stopped_after", "done"), [(10.0, True), (3.0, False)])
@simulated
async def test_work_is_cancelled_when_the_process_is_asked_to_stop(stopped_after: float, done: bool) -> None:
    stop, cancelled = asyncio.Event(), False

    async def work() -> None:
        nonlocal cancelled
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            cancelled = True
            raise

    asyncio.get_running_loop().call_later(stopped_after, stop.set)
    assert (await process._unless_stopped(stop, work()), cancelled) == (done, not done)


async def test_an_error_of_one_part_of_the_work_ends_the_others_and_is_raised() -> None:
    cancelled = False

    async def fails() -> None:
        raise VersionsWentBack("the list of Pods is of version 59")

    async def other() -> None:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        finally:
            cancelled = True

    with pytest.raises(VersionsWentBack):
        await process._unless_stopped(asyncio.Event(), keep_running("Pods", fails), other())
    assert cancelled


async def test_a_kueue_that_does_not_answer_holds_up_no_start(caplog: pytest.LogCaptureFixture) -> None:
    await process._kueue_aside(Lists(1))
    assert "Workloads are not listed: the API server did not answer" in caplog.text


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


async def began(run: Loop, seconds: float) -> list[float]:
    async with going_on(keep_running("reports", run)) as keeping:
        await asyncio.sleep(seconds)
        assert not keeping.done()
    assert keeping.cancelled()
    return run.began


@pytest.mark.parametrize("how", ["raises", "returns", "is cancelled by somebody"])
@simulated
async def test_a_loop_that_ends_begins_again_ever_later(how: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        moments = await began(Loop(how), 100)
    assert [later - earlier for earlier, later in itertools.pairwise(moments)] == pytest.approx(
        [1, 2, 4, 8, 16, LOOP_AGAIN.longest, LOOP_AGAIN.longest], abs=0.05
    )
    assert "reports ended" in caplog.text
    assert ("training.dtjob.dev/role" in caplog.text) == (how == "raises")


@simulated
async def test_a_loop_that_ran_well_for_long_begins_again_after_the_shortest_wait() -> None:
    moments = await began(Loop("raises", WELL_AFTER_SECONDS + 1), 1000)
    assert moments[-1] - moments[-2] == pytest.approx(WELL_AFTER_SECONDS + 2, abs=0.05)


@simulated
async def test_a_loop_ends_when_the_task_that_runs_it_is_cancelled() -> None:
    run = Loop("raises", 1000)
    await began(run, 10)
    assert (len(run.began), run.cancelled) == (1, 1)


STOPS = """
import asyncio, os, signal
from contextlib import asynccontextmanager
from dtjob.kube import process
from dtjob.kube.election.lease import Election

print("a program runs", flush=True)
assert "BEGAN" not in os.environ
os.environ["BEGAN"] = "1"

class Hanging:
    async def get(self, *names):
        if operating.is_set():
            await asyncio.sleep(1e9)

    async def create(self, lease):
        pass

@asynccontextmanager
async def connect(*args, **options):
    yield Hanging()

async def operate(cluster, options, pulse, metrics, stop):
    operating.set()
    os.kill(os.getpid(), signal.SIGTERM)
    await stop.wait()

operating = asyncio.Event()
process.client.connect, process._operate = connect, operate
election = Election("system", "dtjob", 3, "a")
asyncio.run(process.run(process.Options(resync_seconds=180, report_seconds=5, election=election)))
"""


def test_a_program_that_was_told_to_stop_does_not_begin_anew_when_its_lease_runs_out() -> None:
    """The API server does not answer, so that the lease is not released. A new program would run until SIGKILL."""
    ran = subprocess.run([sys.executable, "-c", STOPS], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.splitlines()) == (1, ["a program runs"]), ran.stderr
