# SPDX-License-Identifier: Apache-2.0
"""The operator's loops, against a real API server: what ends is begun again, and SIGTERM still ends all."""

import asyncio
from typing import Any

import kopf
import pytest

from dtjob.controller.reconciler import Reconciler
from tests.cluster.support.in_process import operator_here
from tests.cluster.support.jobs import job
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api


async def until(holds: Any, what: str) -> None:
    async with asyncio.timeout(120):
        while not await asyncio.to_thread(holds):
            await asyncio.sleep(0.1)
    assert holds(), what


async def test_watches_that_fail_and_workers_that_are_cancelled_are_begun_again(
    cluster: ControlPlane, api: Api, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, begun, reconcilers = kopf.spawn_tasks, 0, 0
    run_reconciler = Reconciler.run

    async def spawn(**arguments: Any) -> Any:
        nonlocal begun
        begun += 1
        if begun > 1:
            return await whole(**arguments)
        await asyncio.sleep(0.5)
        for task in asyncio.all_tasks():
            if "Reconciler._work" in repr(task.get_coro()):
                task.cancel()
        raise RuntimeError("Watcher for pods.v1@none has failed")

    async def run(self: Reconciler, workers: int = 10) -> None:
        nonlocal reconcilers
        reconcilers += 1
        await run_reconciler(self, workers)

    monkeypatch.setattr(kopf, "spawn_tasks", spawn)
    monkeypatch.setattr(Reconciler, "run", run)
    async with operator_here(cluster, namespace):
        await until(lambda: begun == 2 and reconcilers == 2, "both begin again")
        await asyncio.to_thread(api.create, "dtjobs", namespace, job())
        await until(lambda: len(api.list("pods", namespace)) == 3, "the watch tells of a new job, and it is worked on")
