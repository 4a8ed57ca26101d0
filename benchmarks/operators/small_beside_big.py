# SPDX-License-Identifier: Apache-2.0
"""Small jobs, one after another: how long each waits for its pods alone, and while a large job's pods are made.

They are applied at a steady pace, whether those before have their pods or not, until the large job has all of its pods,
and as many alone as at most beside it. How long the API server takes for the call that applies them, in which no
operator has a part, tells how busy it is, with the large job and with what schedules and runs its pods. On the side of
the bare loop that call says how busy it is with the large job's objects, posted 50 at a time. What a small job needs is
posted there one object after another, so that its time to its pods is no limit.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.operators import durations
from benchmarks.operators.audit import Created
from benchmarks.operators.jobs import NAMESPACE, Shape, objects_of
from benchmarks.operators.rounds import OnTestbed, run
from benchmarks.operators.sides import Side, posts
from benchmarks.operators.statistics import Goal, Numbers, percentile
from benchmarks.operators.testbed import Testbed
from benchmarks.peers.bare_loop import Calls
from dtjob.kube.calls.kinds import KINDS
from tools.cluster.rest import Api, Object

SMALL = Shape(workers=1)


class Latency(NamedTuple):
    """Of one small job, in seconds: until the call that applies it was answered, and until all of its pods had been
    created."""

    to_applied: float
    to_pods: float


def measure(bed: Testbed, side: Side, options: argparse.Namespace) -> Numbers:
    """One side, once."""
    pace = options.every / 1000
    pods = bed.audit.created(side.user, "pods")
    alone = latencies(bed, side, pods, [f"alone-{number}" for number in range(options.jobs)], pace, lambda: True)
    bed.delete_jobs(side.resource)
    large, at = Shape(options.workers), time.time()
    created = bed.api.create(side.resource, NAMESPACE, side.job("large", large))
    posting = post_all(bed, side, created) if side.bare else None
    pods.wait(1, "large")
    names = [f"beside-{number}" for number in range(options.jobs)]
    beside = latencies(bed, side, pods, names, pace, lambda: is_being_made(pods, large))
    took = pods.wait(large.pods, "large") - at
    if posting:
        posting.wait()
    found = {"smallJobs": float(len(beside)), "secondsToLarge": took, **quantiles("Alone", alone)}
    if beside:  # else the large one was done at once
        found |= quantiles("Beside", beside)
        found["p99Ratio"] = found["p99Beside"] / found["p99Alone"]
        found["appliedP99Ratio"] = found["appliedP99Beside"] / found["appliedP99Alone"]
    return found


def quantiles(where: str, small: Sequence[Latency]) -> Numbers:
    """The median and the last percent of the time to the pods, and the last percent of that until it was applied."""
    whole, applied = [one.to_pods for one in small], [one.to_applied for one in small]
    return {
        f"p50{where}": percentile(whole, 0.5),
        f"p99{where}": percentile(whole, 0.99),
        f"appliedP99{where}": percentile(applied, 0.99),
    }


def is_being_made(pods: Created, large: Shape) -> bool:
    """Whether there are still pods of the large job to come."""
    pods.look()
    return len(pods.of("large")) < large.pods


def latencies(
    bed: Testbed, side: Side, pods: Created, names: Sequence[str], pace: float, going: Callable[[], bool]
) -> list[Latency]:
    """Apply a small job each `pace` seconds while it is `going`."""
    began, applied, user = time.monotonic(), dict[str, tuple[float, float]](), Api(bed.kubeconfig_of(side.user))
    for number, name in enumerate(names):
        time.sleep(max(0.0, began + number * pace - time.monotonic()))
        if not going():
            break
        at = time.time()
        created = bed.api.create(side.resource, NAMESPACE, side.job(name, SMALL))
        applied[name] = at, time.time() - at
        if side.bare:
            for one in objects_of(created):
                user.create(KINDS[one["kind"]][1], NAMESPACE, one)
    return [Latency(took, pods.wait(SMALL.pods, name) - at) for name, (at, took) in applied.items()]


def post_all(bed: Testbed, side: Side, job: Object) -> Calls:
    """Begin to post all that this job needs."""
    calls = bed.calls(posts(objects_of(job)), user=side.user)
    calls.go()
    return calls


def estimate(side: str, options: argparse.Namespace) -> float:
    """Seconds that one side takes in one round."""
    alone = options.jobs * (options.every / 1000 + 0.1)
    pods = Shape(options.workers).pods
    return float(alone) + durations.made(pods, durations.ONE_JOB, side) + durations.changed(pods)


SCENARIO = OnTestbed(
    name="small_beside_big",
    title="Small jobs beside one of a thousand workers",
    measure=measure,
    sides=("dtjob", "tfjob", "tfjob-tuned", "bare"),
    slow=("tfjob",),
    estimate=estimate,
    options={
        "jobs": (100, "small jobs, at most"),
        "workers": (1000, "workers of the large job, beside its chief"),
        "every": (500, "milliseconds from one small job to the next"),
    },
    units={
        "smallJobs": "small jobs applied while the large one was made",
        "secondsToLarge": "seconds until all pods of the large job exist, small ones beside it",
        "p50Alone": "seconds to a small job's pods alone, p50",
        "p99Alone": "seconds to a small job's pods alone, p99",
        "p50Beside": "beside the large job, p50",
        "p99Beside": "beside the large job, p99",
        "p99Ratio": "p99 beside it to p99 alone",
        "appliedP99Alone": "seconds until the call that applies it is answered, alone, p99",
        "appliedP99Beside": "the same beside the large job, p99",
        "appliedP99Ratio": "p99 of that call beside it to its p99 alone",
    },
    goals=(Goal("p99Ratio", "dtjob", None, "at most", 2),),
)


if __name__ == "__main__":
    run(SCENARIO, __doc__)
