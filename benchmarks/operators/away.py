# SPDX-License-Identifier: Apache-2.0
"""The operator is away while many jobs change: how long it takes from its start until all is right.

Of the jobs that ran, a third end well, a third lose a worker (137) and a third are deleted; as many as were deleted are
applied anew. All is right when those that ended have Succeeded, each lost worker has a replacement, and the new jobs
are Running.
"""

import argparse
import time

from benchmarks.operators import durations
from benchmarks.operators.jobs import NAMESPACE, SUCCEEDED, Shape, ended
from benchmarks.operators.observed import Jobs, Pods
from benchmarks.operators.rounds import OnTestbed, run
from benchmarks.operators.sides import Side
from benchmarks.operators.standing_load import fill
from benchmarks.operators.statistics import Goal, Numbers
from benchmarks.operators.testbed import Testbed
from benchmarks.peers.bare_loop import Call
from tools.cluster.rest import Object, path_of

SHAPE = Shape(workers=1, ps=1)


def measure(bed: Testbed, side: Side, options: argparse.Namespace) -> Numbers:
    """One side, once."""
    third = max(1, options.jobs // 3)
    well, lose, go, come = ([f"{what}-{number}" for number in range(third)] for what in ("well", "lose", "go", "come"))
    fill(bed, side, [*well, *lose, *go], SHAPE)
    left = time.monotonic()
    with Pods(bed.api, side.task_of) as pods, Jobs(bed.api, side.resource, side.phase_of) as jobs:
        changes = bed.calls(
            [
                *(Call("DELETE", path_of(side.resource, NAMESPACE, name), {}) for name in go),
                *(side.applying(side.job(name, SHAPE)) for name in come),
                *(call for pod in bed.api.list("pods", NAMESPACE) for call in _ends(side, pod, set(well), set(lose))),
            ]
        )
        changes.go()
        changes.wait()
        time.sleep(max(0.0, left + options.away - time.monotonic()))
        began = time.monotonic()
        side.start(bed)
        started = time.monotonic()
        ended_well = jobs.wait_all(SUCCEEDED, well)
        replaced = max(pods.wait_task((name, "worker", "0")) for name in lose)
        made = jobs.wait_all("Running", come)
    return {
        "secondsToReady": started - began,
        "secondsToSucceeded": ended_well - began,
        "secondsToReplaced": replaced - began,
        "secondsToRunning": made - began,
        "secondsToRight": max(ended_well, replaced, made) - began,
        "cpuSeconds": side.usage().cpu_seconds,
    }


def _ends(side: Side, pod: Object, well: set[str], lose: set[str]) -> list[Call]:
    """How the pod ends, where it does."""
    job, role, _ = side.task_of_pod(pod)
    if job not in well and not (job in lose and role == "worker"):
        return []
    path = path_of("pods", NAMESPACE, pod["metadata"]["name"], "status")
    return [Call("PATCH", path, ended(pod, 0 if job in well else 137))]


def estimate(side: str, options: argparse.Namespace) -> float:
    """Seconds that one side takes in one round."""
    pods = options.jobs * SHAPE.pods
    right = durations.made(pods // 3, durations.MANY_JOBS, side)
    return durations.filled(pods, side) + max(float(options.away), durations.changed(pods)) + right


SCENARIO = OnTestbed(
    name="away",
    title="The operator away while a thousand jobs change",
    measure=measure,
    sides=("dtjob", "tfjob", "tfjob-tuned"),
    slow=("tfjob",),
    estimate=estimate,
    options={"jobs": (1000, "jobs"), "away": (60, "seconds that the operator is away")},
    units={
        "secondsToReady": "seconds until the operator works",
        "secondsToSucceeded": "seconds until those that ended have Succeeded",
        "secondsToReplaced": "seconds until lost workers have replacements",
        "secondsToRunning": "seconds until new jobs are Running",
        "secondsToRight": "seconds until all is right",
        "cpuSeconds": "CPU s until then",
    },
    goals=(Goal("secondsToRight", "dtjob", None, "at most", 10),),
)


if __name__ == "__main__":
    run(SCENARIO, __doc__)
