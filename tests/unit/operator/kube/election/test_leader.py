# SPDX-License-Identifier: Apache-2.0
"""The leader's clock and end, in simulated time: renewals, hanging calls, release."""

import asyncio
import subprocess
import sys
from typing import Any, TypeVar

import pytest

from dtjob.controller.cluster import ClusterError, Stale
from dtjob.kube.election.leader import Leader
from dtjob.kube.election.lease import Election
from dtjob.kube.endpoints.endpoint import Pulse
from tests.unit.operator.simulation.time import simulated


class OneLease:
    """What an API server keeps of one lease. `state`: up, down (refuses connections) or hanging (never answers)."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.state = "up"

    @property
    def holder(self) -> str | None:
        return self.lease["spec"]["holderIdentity"] if self.lease else None

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        await self._answers()
        return self.lease

    async def create(self, lease: dict[str, Any]) -> None:
        await self._answers()
        assert self.lease is None
        self._store(lease, 1)

    async def replace(self, lease: dict[str, Any]) -> None:
        await self._answers()
        assert self.lease is not None
        if lease["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Stale("it changed")
        self._store(lease, lease["metadata"]["resourceVersion"] + 1)

    def _store(self, lease: dict[str, Any], version: int) -> None:
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": version}}

    async def _answers(self) -> None:
        if self.state == "hanging":
            await asyncio.sleep(1e9)
        if self.state == "down":
            raise ClusterError("connection refused")


AnyLease = TypeVar("AnyLease", bound=OneLease)


class Exits(list[float]):
    """When the program began anew."""

    def __call__(self) -> None:
        self.append(asyncio.get_running_loop().time())


def leader(cluster: OneLease, name: str, exits: Exits) -> Leader:
    return Leader(cluster, Election("system", "dtjob", 15, name), Pulse(), exits)  # type: ignore[arg-type]


async def leading(cluster: AnyLease) -> tuple[Leader, AnyLease, Exits]:
    """The leader a, which has the lease."""
    one = leader(cluster, "a", exits := Exits())
    await one.acquire()
    return one, cluster, exits


@simulated
async def test_a_leader_renews_for_ever() -> None:
    one, cluster, exits = await leading(OneLease())
    await asyncio.sleep(3600)
    assert exits == []
    assert cluster.holder == "a"
    await one.release()
    assert cluster.holder == ""
    await asyncio.sleep(60)
    assert exits == []


@pytest.mark.parametrize("state", ["down", "hanging"])
@simulated
async def test_a_leader_ends_before_its_lease_does(state: str) -> None:
    one, cluster, exits = await leading(OneLease())
    await asyncio.sleep(61)
    cluster.state, gone = state, asyncio.get_running_loop().time()
    await asyncio.sleep(15)
    assert exits[0] - gone <= 10
    await one.release()


class Slow(OneLease):
    """Each call takes so many seconds."""

    seconds = 0.0

    async def _answers(self) -> None:
        await asyncio.sleep(self.seconds)


@simulated
async def test_a_slow_api_server_costs_no_lease() -> None:
    one, cluster, exits = await leading(Slow())
    cluster.seconds = 2.2
    await asyncio.sleep(3600)
    assert (exits, cluster.holder) == ([], "a")
    await one.release()


class OneDeadConnection(OneLease):
    """One call goes over a connection whose other end is gone; all others are answered at once."""

    dead = False

    async def _answers(self) -> None:
        if self.dead:
            self.dead = False
            await asyncio.sleep(1e9)


@simulated
async def test_a_single_hanging_call_does_not_lose_the_lease() -> None:
    one, cluster, exits = await leading(OneDeadConnection())
    for _ in range(3):
        cluster.dead = True
        await asyncio.sleep(20)
    assert exits == []
    assert not cluster.dead
    await one.release()


@simulated
async def test_a_leader_whose_lease_was_taken_ends() -> None:
    one, cluster, exits = await leading(OneLease())
    assert cluster.lease
    cluster._store({**cluster.lease, "spec": {**cluster.lease["spec"], "holderIdentity": "b"}}, 99)
    await asyncio.sleep(2.5)
    assert exits
    await one.release()
    assert cluster.holder == "b"


@simulated
async def test_a_standby_follows_a_release_and_a_death() -> None:
    cluster, exits = OneLease(), Exits()
    one, two, three = (leader(cluster, name, exits) for name in "abc")
    await one.acquire()
    waiting = asyncio.create_task(two.acquire())
    await asyncio.sleep(100)
    assert not waiting.done()
    await one.release()
    await asyncio.sleep(2.1)
    assert waiting.done()
    assert cluster.holder == "b"
    waiting = asyncio.create_task(three.acquire())
    await asyncio.sleep(5)
    two._renewing.cancel()  # type: ignore[union-attr]
    await asyncio.sleep(17.1)
    assert waiting.done()
    assert cluster.holder == "c"
    await asyncio.gather(two.release(), three.release())


@simulated
async def test_release_does_not_wait_for_an_api_server_that_hangs() -> None:
    one, cluster, _ = await leading(OneLease())
    cluster.state = "hanging"
    await one.release()
    assert asyncio.get_running_loop().time() < 12


LOSES = """
import os, sys
from dtjob.kube.election.leader import Leader
from dtjob.kube.election.lease import Election
from dtjob.kube.endpoints.endpoint import Pulse

print(os.getpid(), *sys.argv[1:], flush=True)
if "BEGAN" not in os.environ:
    os.environ["BEGAN"] = "1"
    Leader(None, Election("system", "dtjob", 15, "a"), Pulse())._lose("an outage")
"""


def test_a_program_that_lost_its_lease_begins_anew_in_the_same_process() -> None:
    """An end of the process would be a crash to its kubelet, which waits longer and longer before the next start."""
    ran = subprocess.run([sys.executable, "-c", LOSES, "operator", "--leader-election"], capture_output=True, text=True)
    first, *rest = ran.stdout.splitlines()
    assert first.split()[1:] == ["operator", "--leader-election"]
    assert rest == [first]
    assert ran.returncode == 0
