# SPDX-License-Identifier: Apache-2.0
"""How long the operator holds its event loop at worst, with one job of many pods on a real API server.

Held time is CPU time of the loop's own thread, so that other work of the machine does not count. Three phases: it
starts and finds everything; each pod's address changes; a second job as large is applied.
"""

import argparse
import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.filled_cluster import NAMESPACE, filled, manifest
from dtjob.controller.reconciler import Reconciler
from dtjob.kube import process
from dtjob.kube.calls.client import connect
from tests.cluster.support.jobs import all_created
from tools.cluster.rest import Api

TICK_SECONDS = 0.005
QUIET_SECONDS = 8
AT_ONCE = 20


class Phase:
    """One phase: how long the loop was held at worst, CPU seconds, and looks at jobs."""

    def __init__(self, looks: list[float]) -> None:
        self._looks, self._first, self._began, self._longest = looks, len(looks), time.process_time(), 0.0
        self._task = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(TICK_SECONDS)
            self._longest = max(self._longest, time.thread_time() - began)

    def result(self) -> dict[str, Any]:
        """The phase is over."""
        self._task.cancel()
        spent, looks = time.process_time() - self._began, self._looks[self._first :]
        return {
            "longestHoldSeconds": round(self._longest, 3),
            "cpuSeconds": round(spent, 2),
            "plans": len(looks),
        }


async def measure(kubeconfig: str, workers: int) -> dict[str, Any]:
    """Run the operator through the phases."""
    looks: list[float] = []
    reconcile = Reconciler.reconcile

    async def counted(self: Reconciler, key: tuple[str, str]) -> Any:
        looks.append(time.monotonic())
        return await reconcile(self, key)

    Reconciler.reconcile = counted  # type: ignore[method-assign]
    options = process.Options(resync_seconds=3600, report_seconds=3600, kubeconfig=kubeconfig)
    start = Phase(looks)
    operator = asyncio.create_task(process.run(options))
    results = {}
    await _quiet(looks)
    results["start"] = start.result()
    change = Phase(looks)
    await _run("--change", kubeconfig)
    await _quiet(looks)
    results["changes"] = change.result()
    create = Phase(looks)
    await _run("--apply", kubeconfig, str(workers))
    await _quiet(looks)
    results["create"] = create.result()
    os.kill(os.getpid(), signal.SIGTERM)  # as a kubelet ends it
    await operator
    return {"pods": workers + 1, **results}


async def _quiet(looks: list[float]) -> None:
    """Wait until no job was looked at for a while."""
    began = time.monotonic()
    while time.monotonic() < max([began, *looks[-1:]]) + QUIET_SECONDS:  # noqa: ASYNC110 (what ends is not known)
        await asyncio.sleep(0.5)


async def _run(*arguments: str) -> None:
    made = await asyncio.create_subprocess_exec(sys.executable, "-m", "benchmarks.event_loop", *arguments)
    if await made.wait():
        raise subprocess.SubprocessError(" ".join(arguments))


async def change_all(kubeconfig: str) -> None:
    """Give every pod another address."""
    async with connect(kubeconfig) as kube:
        pods = iter(Api(Path(kubeconfig)).list("pods", NAMESPACE))

        async def lane() -> None:
            for pod in pods:
                status = {"podIP": "10.9.8.7", "podIPs": [{"ip": "10.9.8.7"}]}
                path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}/status"
                await kube._call("PATCH", path, {"status": status})

        await asyncio.gather(*(lane() for _ in range(AT_ONCE)))


def main() -> None:
    """Print the measurement as one JSON object."""
    logging.disable(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=4000)
    parser.add_argument("--kubeconfig", help=argparse.SUPPRESS)
    parser.add_argument("--change", help=argparse.SUPPRESS)
    parser.add_argument("--apply", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.change:
        asyncio.run(change_all(options.change))
    elif options.apply:
        api = Api(Path(options.apply[0]))
        api.create("dtjobs", NAMESPACE, manifest("second", int(options.apply[1])))
        api.wait_for("dtjobs", NAMESPACE, "second", all_created, 600)
    elif options.kubeconfig:
        json.dump(asyncio.run(measure(options.kubeconfig, options.pods - 1)), sys.stdout, indent=1)
        print()
    else:
        with filled(options.pods, options.pods) as cluster:
            json.dump(asyncio.run(measure(str(cluster.kubeconfig), options.pods - 1)), sys.stdout, indent=1)
            print()


if __name__ == "__main__":
    main()
