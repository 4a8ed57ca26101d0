# SPDX-License-Identifier: Apache-2.0
"""Memory that the operator's store takes for a pod, and a resync at its peak: what is kept, and whole objects.

Real pods on a real API server, listed by the operator's own client; each side in a process of its own.
"""

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

from benchmarks.filled_cluster import filled
from dtjob.api.job import KIND
from dtjob.controller import store as store_module
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import LISTED_KINDS, Store
from dtjob.kube.calls.client import Kube, connect
from dtjob.kube.watching.informer import Informer, resync
from dtjob.objects import labels

KEPT, WHOLE = "kept", "whole"


async def measure(kubeconfig: str, side: str, pods: int) -> dict[str, int]:
    """Bytes: of a pod in a store, as Python counts, and of the process at the peak of its second resync."""
    store = Store()
    async with connect(kubeconfig) as kube:
        if side == WHOLE:
            store_module.kept = lambda manifest: manifest
        take_in = _take_in_whole if side == WHOLE else _take_in
        await take_in(kube, store)
        gc.collect()
        _forget_peak()
        await take_in(kube, store)
        peak, store = _status("VmHWM"), Store()
        tracemalloc.start()
        await take_in(kube, store)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        return {"bytesAPod": held // pods, "peakBytesAtResync": peak}


async def _take_in(kube: Kube, store: Store) -> None:
    await resync([Informer(kube, kind, store, WorkQueue()) for kind in (*LISTED_KINDS, KIND)])


async def _take_in_whole(kube: Kube, store: Store) -> None:
    """As an operator that lists all before it takes anything in."""
    pods = [pod async for page, _ in kube.pages("Pod", None, labels.JOB_NAME) for pod in page]
    for pod in pods:
        pod["metadata"]["resourceVersion"] += "0"  # newer than what is there
        store.apply(pod)


def _forget_peak() -> None:
    """Count the peak from here."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    """A line of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def main() -> None:
    """Print the measurement as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=4000)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        json.dump(asyncio.run(measure(*options.measure, options.pods)), sys.stdout)
        return
    results = {}
    with filled(options.pods) as cluster:
        for side in (KEPT, WHOLE):
            command = [sys.executable, "-m", "benchmarks.operator_memory", "--pods", str(options.pods)]
            done = subprocess.run([*command, "--measure", str(cluster.kubeconfig), side], stdout=-1, check=True)
            results[side] = json.loads(done.stdout)
    json.dump({"pods": options.pods, **results}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
