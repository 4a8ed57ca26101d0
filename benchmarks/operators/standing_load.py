# SPDX-License-Identifier: Apache-2.0
"""Many jobs that run: what an operator costs that watches over them, and how soon it replaces a pod that fails.

The jobs are there and run when the operator starts, so its peak is that of a start onto them. (TFJob at its defaults
would take an hour to make them: it is started tuned for that.) At rest nothing changes. Then a worker of one job after
another is killed (137); the reaction is the time from there to when its replacement has been created.
"""

import argparse
import time

from benchmarks.operators import durations
from benchmarks.operators.jobs import NAMESPACE, Shape, ended
from benchmarks.operators.observed import Jobs, Pods
from benchmarks.operators.rounds import OnTestbed, run
from benchmarks.operators.sides import Side
from benchmarks.operators.statistics import Goal, Numbers, percentile
from benchmarks.operators.testbed import Testbed

WORKERS, PS = 8, 1
_SETTLE_SECONDS = 15.0
"""Beyond dtjob's second resync, ten seconds after its first."""


def measure(bed: Testbed, side: Side, options: argparse.Namespace) -> Numbers:
    """One side, once."""
    names, shape = [f"standing-{number}" for number in range(options.jobs)], Shape(options.workers, PS)
    fill(bed, side, names, shape)
    side.start(bed)
    time.sleep(_SETTLE_SECONDS)
    before, began = side.usage(), time.monotonic()
    time.sleep(options.rest)
    at_rest = (side.usage().cpu_seconds - before.cpu_seconds) / (time.monotonic() - began)
    chosen = [names[number * len(names) // options.failures] for number in range(min(options.failures, len(names)))]
    reactions = [react(bed, side, name) for name in chosen]
    return {
        "peakMegabytes": side.usage().peak_bytes / 1e6,
        "cpuPercentAtRest": 100 * at_rest,
        "reactionP50": percentile(reactions, 0.5),
        "reactionP99": percentile(reactions, 0.99),
    }


def fill(bed: Testbed, side: Side, names: list[str], shape: Shape) -> None:
    """Have all these jobs run. No operator is there when this returns."""
    side.stop()
    filling = side.filling()
    filling.start(bed)
    try:
        with Jobs(bed.api, side.resource, side.phase_of) as jobs:
            calls = bed.calls([side.applying(side.job(name, shape)) for name in names])
            calls.go()
            calls.wait()
            jobs.wait_all("Running", names)
    finally:
        filling.stop()


def react(bed: Testbed, side: Side, job: str) -> float:
    """Kill worker 0 of a job; seconds until its replacement was created."""
    task = (job, "worker", "0")
    pod = next(one for one in bed.api.list("pods", NAMESPACE, side.selector(job)) if side.task_of_pod(one) == task)
    with Pods(bed.api, side.task_of) as pods:
        began = time.monotonic()
        bed.api.patch("pods", NAMESPACE, pod["metadata"]["name"], ended(pod, 137), "status")
        return pods.wait_task(task) - began


def estimate(side: str, options: argparse.Namespace) -> float:
    """Seconds that one side takes in one round."""
    pods = options.jobs * Shape(options.workers, PS).pods
    there = durations.filled(pods, side) + durations.SIDE_SECONDS + durations.changed(pods)
    return there + _SETTLE_SECONDS + float(options.rest) + 0.3 * float(min(options.failures, options.jobs))


SCENARIO = OnTestbed(
    name="standing_load",
    title="A thousand jobs that run",
    measure=measure,
    sides=("dtjob", "tfjob", "tfjob-tuned"),
    slow=("tfjob",),
    estimate=estimate,
    options={
        "jobs": (1000, "jobs"),
        "workers": (WORKERS, "workers of each job, beside its chief and its parameter server"),
        "rest": (60, "seconds at rest"),
        "failures": (100, "pods that fail, each of another job"),
    },
    units={
        "peakMegabytes": "peak memory, MB",
        "cpuPercentAtRest": "CPU at rest, % of a core",
        "reactionP50": "seconds to a replacement, p50",
        "reactionP99": "seconds to a replacement, p99",
    },
    goals=(
        Goal("peakMegabytes", "dtjob", "tfjob-tuned", "at most", 1),
        Goal("reactionP99", "dtjob", None, "at most", 1),
    ),
)


if __name__ == "__main__":
    run(SCENARIO, __doc__)
