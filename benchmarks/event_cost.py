# SPDX-License-Identifier: Apache-2.0
"""CPU time that one change of a pod costs the operator before anything is decided: the watch, and taking it in.

Real pods on a real API server; another process changes each of them `--rounds` times.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.filled_cluster import NAMESPACE, filled
from dtjob.controller.cluster import JobKey
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.calls.client import connect
from dtjob.kube.process import collect_garbage_seldom
from dtjob.kube.watching import informer
from tools.cluster.rest import Api

TICK_SECONDS = 0.005


class Ticker:
    """Measures how long the event loop was held at worst."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._task = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            # This thread's own CPU time, so that other processes of the machine do not count.
            began = time.thread_time()
            await asyncio.sleep(TICK_SECONDS)
            self.longest = max(self.longest, time.thread_time() - began)

    def stop(self) -> float:
        """The longest time in seconds between two turns."""
        self._task.cancel()
        return self.longest


async def measure(kubeconfig: str, rounds: int) -> dict[str, Any]:
    """Watch until the changes have come; CPU microseconds of an event, and the longest hold of the loop."""
    store, queue, events = Store(), WorkQueue[JobKey](), 0
    take_in = informer.take_in

    def counted(*arguments: Any) -> None:
        nonlocal events
        events += 1
        take_in(*arguments)

    informer.take_in = counted
    collect_garbage_seldom()
    async with connect(kubeconfig) as kube:
        pods = len(Api(Path(kubeconfig)).list("pods", NAMESPACE))
        ticker, began = Ticker(), time.process_time()
        watching = asyncio.create_task(informer.Informer(kube, "Pod", store, queue).watch())
        await _until(lambda: events >= pods)
        await asyncio.sleep(2)
        listed, listing = time.process_time() - began, ticker.stop()
        ticker, before, began = Ticker(), events, time.process_time()
        arguments = ("-m", "benchmarks.event_cost", "--change", kubeconfig, str(rounds))
        changes = await asyncio.create_subprocess_exec(sys.executable, *arguments)
        await _until(lambda: events >= before + rounds * pods or changes.returncode not in (None, 0))
        spent, holding, seen = time.process_time() - began, ticker.stop(), events - before
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    return {
        "pods": pods,
        "events": seen,
        "microsecondsAnEvent": round(1e6 * spent / seen),
        "microsecondsAListedPod": round(1e6 * listed / pods),
        "longestHoldSeconds": {"list": round(listing, 3), "events": round(holding, 3)},
    }


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 (nobody tells when)
        await asyncio.sleep(0.1)


def change(kubeconfig: str, rounds: int) -> None:
    """Change an annotation of each pod so often."""

    async def work() -> None:
        async with connect(kubeconfig) as kube:
            names = [pod["metadata"]["name"] for pod in Api(Path(kubeconfig)).list("pods", NAMESPACE)]
            calls = iter([(name, number) for number in range(rounds) for name in names])

            async def lane() -> None:
                for name, number in calls:
                    body = {"metadata": {"annotations": {"changed": f"{time.time()}-{number}"}}}
                    await kube._call("PATCH", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}", body)

            await asyncio.gather(*(lane() for _ in range(20)))

    asyncio.run(work())


def main() -> None:
    """Print the measurement as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--kubeconfig", help="a cluster that benchmarks.filled_cluster has filled")
    parser.add_argument("--change", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.change:
        change(options.change[0], int(options.change[1]))
    elif options.kubeconfig:
        json.dump(asyncio.run(measure(options.kubeconfig, options.rounds)), sys.stdout, indent=1)
        print()
    else:
        with filled(options.pods) as cluster:
            json.dump(asyncio.run(measure(str(cluster.kubeconfig), options.rounds)), sys.stdout, indent=1)
            print()


if __name__ == "__main__":
    main()
