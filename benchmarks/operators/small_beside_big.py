"""Small jobs, one after another: how long each waits for its pods alone, and while a large job's pods are made.

Where the large job is done before all small ones have had their turn, only those count that were applied before.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.operators.jobs import NAMESPACE, Shape
from benchmarks.operators.observed import Pods
from benchmarks.operators.rounds import Scenario, run
from benchmarks.operators.sides import Side
from benchmarks.operators.statistics import Goal, Numbers, percentile
from benchmarks.operators.testbed import Testbed

SMALL = Shape(workers=1)


def measure(bed: Testbed, side: Side, options: argparse.Namespace) -> Numbers:
    """One side, once."""
    with Pods(bed.api, side.task_of) as pods:
        alone = [latency(bed, side, pods, f"alone-{number}") for number in range(options.jobs)]
        bed.delete_jobs(side.resource)
        large = Shape(options.workers)
        bed.api.create(side.resource, NAMESPACE, side.job("large", large))
        pods.wait_job("large", 1)
        beside: list[float] = []
        while len(beside) < options.jobs and len(pods.of_job["large"]) < large.pods:
            beside.append(latency(bed, side, pods, f"beside-{len(beside)}"))
        pods.wait_job("large", large.pods)
    return {
        "smallJobs": len(beside),
        "p50Alone": percentile(alone, 0.5),
        "p99Alone": percentile(alone, 0.99),
        "p50Beside": percentile(beside, 0.5),
        "p99Beside": percentile(beside, 0.99),
        "p99Ratio": percentile(beside, 0.99) / percentile(alone, 0.99),
    }


def latency(bed: Testbed, side: Side, pods: Pods, name: str) -> float:
    """Apply a small job; seconds until all its pods had been created."""
    began = time.monotonic()
    bed.api.create(side.resource, NAMESPACE, side.job(name, SMALL))
    return pods.wait_job(name, SMALL.pods) - began


SCENARIO = Scenario(
    name="small_beside_big",
    title="Small jobs beside one of a thousand workers",
    measure=measure,
    sides=("dtjob", "tfjob", "tfjob-tuned"),
    jobs=100,
    options={"workers": (1000, "workers of the large job, beside its chief")},
    units={
        "smallJobs": "small jobs applied while the large one was made",
        "p50Alone": "seconds to a small job's pods alone, p50",
        "p99Alone": "seconds to a small job's pods alone, p99",
        "p50Beside": "beside the large job, p50",
        "p99Beside": "beside the large job, p99",
        "p99Ratio": "p99 beside it to p99 alone",
    },
    goals=(Goal("p99Ratio", "dtjob", None, "at most", 2),),
)


if __name__ == "__main__":
    run(SCENARIO, __doc__)
