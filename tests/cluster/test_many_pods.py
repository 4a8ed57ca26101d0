# SPDX-License-Identifier: Apache-2.0
"""A job of many pods, and others beside it, under an operator in the tests' own process, whose calls are watched."""

import asyncio

import pytest

from dtjob.kube.calls.client import Kube
from dtjob.objects.manifest import Manifest
from tests.cluster.support.in_process import operator_here
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, Object

MANY = 60


def many(name: str) -> Object:
    """A job with MANY workers."""
    return job(name, replicaSpecs={"worker": {"replicas": MANY}})


async def test_names_come_before_pods_and_pods_side_by_side(
    cluster: ControlPlane, api: Api, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Service that gives pods their names, ready or not, is there before the first pod is asked for."""
    create, under_way = Kube.create, 0
    calls: list[str] = []
    at_once: list[int] = []

    async def counted(self: Kube, manifest: Manifest) -> Manifest:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        calls.append(f"{manifest['kind']} asked for")
        try:
            return await create(self, manifest)
        finally:
            under_way -= 1
            calls.append(f"{manifest['kind']} there")

    def life() -> Object:
        api.create("dtjobs", namespace, many("digits"))
        api.wait("pods", namespace, lambda pods: len(pods) == MANY)
        return api.get("services", namespace, "digits")

    monkeypatch.setattr(Kube, "create", counted)
    async with operator_here(cluster, namespace):
        service = await asyncio.to_thread(life)
    assert calls.index("Service there") < calls.index("Pod asked for")
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert max(at_once) >= 16  # calls that wait for their answers together


async def test_a_large_job_does_not_delay_a_small_one(
    cluster: ControlPlane, api: Api, namespace: str, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server answers 29 creates of the big one only when the small one runs, which comes after it."""
    create, begun, small_runs = Kube.create, 0, asyncio.Event()

    async def slow(self: Kube, manifest: Manifest) -> Manifest:
        nonlocal begun
        if manifest["kind"] == "Pod" and manifest["metadata"]["name"].startswith("big-"):
            begun += 1
            if begun > MANY // 2 + 1:
                await small_runs.wait()
        return await create(self, manifest)

    def life() -> int:
        api.create("dtjobs", namespace, many("big"))
        api.wait("pods", namespace, lambda pods: len(pods) > MANY // 2)
        api.create("dtjobs", namespace, job("small"))
        for task in ("chief-0", "worker-0", "worker-1"):
            kubelet.run(f"small-{task}-0")
        wait_phase(api, namespace, "Running", "small")
        return sum(pod["metadata"]["name"].startswith("big-") for pod in api.list("pods", namespace))

    monkeypatch.setattr(Kube, "create", slow)
    async with operator_here(cluster, namespace):
        assert await asyncio.to_thread(life) < MANY
        small_runs.set()
        await asyncio.to_thread(api.wait, "pods", namespace, lambda pods: len(pods) == MANY + 3)
