# SPDX-License-Identifier: Apache-2.0
"""Many jobs applied at once: until every pod exists, every job is Running, and every job has Succeeded.

The pods of all jobs end well as soon as all jobs are Running. Pods exist when the API server has answered their
creation, as its audit log says, which has the requests of the operator's user too. CPU time and memory are the
operator's process' own, its start left out of the first.
"""

import argparse
import time

from benchmarks.operators import durations
from benchmarks.operators.audit import requests
from benchmarks.operators.jobs import NAMESPACE, Shape, objects_of
from benchmarks.operators.observed import Jobs
from benchmarks.operators.rounds import OnTestbed, end_all, run
from benchmarks.operators.sides import Side, posts
from benchmarks.operators.statistics import Goal, Numbers
from benchmarks.operators.testbed import Testbed
from benchmarks.peers.bare_loop import Call
from tools.cluster.rest import path_of

WORKERS = 3
LOOK_SECONDS = 0.25
"""How often is looked whether the bare loop's pods run."""


def measure(bed: Testbed, side: Side, options: argparse.Namespace) -> Numbers:
    """One side, once."""
    names, shape = [f"burst-{number}" for number in range(options.jobs)], Shape(options.workers)
    pods = len(names) * shape.pods
    applying = [side.applying(side.job(name, shape)) for name in names]
    if side.bare:
        return bare(bed, side, applying, pods)
    calls, since, before = bed.calls(applying), bed.audit.end(), side.usage()
    born = bed.audit.created(side.user, "pods")
    with Jobs(bed.api, side.resource, side.phase_of) as jobs:
        began, at = time.monotonic(), time.time()
        calls.go()
        exist = born.wait(pods) - at
        calls.wait()
        running = jobs.wait_phase("Running", len(names)) - began
        at_running, asked = side.usage(), bed.audit.asked(side.user, since)
        stored = bed.stored_bytes()
        ended = time.monotonic()
        succeeded = end_all(bed, jobs, len(names)) - ended
        after, asked_in_all = side.usage(), bed.audit.asked(side.user, since)
    return {
        "podsPerSecond": pods / exist,
        "secondsToPods": exist,
        "secondsToRunning": running,
        "secondsToSucceeded": succeeded,
        "requestsPerJobToRunning": requests(asked) / len(names),
        "requestsPerJob": requests(asked_in_all) / len(names),
        "eventsPerJob": sum(number for (_, what), number in asked_in_all.items() if what == "events") / len(names),
        "cpuMillisecondsPerPodToRunning": 1e3 * (at_running.cpu_seconds - before.cpu_seconds) / pods,
        "cpuMillisecondsPerPod": 1e3 * (after.cpu_seconds - before.cpu_seconds) / pods,
        "cpuSecondsOfStart": before.cpu_seconds,
        "peakMegabytes": after.peak_bytes / 1e6,
        "storedBytesPerJob": sum(number for what, number in stored.items() if what != "events") / len(names),
    }


def bare(bed: Testbed, side: Side, applying: list[Call], pods: int) -> Numbers:
    """The limit: the jobs are there already, and nobody works on them; all that they need is posted at once. They run
    as soon as their pods do."""
    jobs = bed.calls(applying)
    jobs.go()
    jobs.wait()
    objects = [one for job in bed.api.list("dtjobs", NAMESPACE) for one in objects_of(job)]
    calls, born = bed.calls(posts(objects), user=side.user), bed.audit.created(side.user, "pods")
    at = time.time()
    calls.go()
    exist = born.wait(pods) - at
    calls.wait()
    waiting = {"fieldSelector": "status.phase=Pending", "limit": "1"}
    while bed.api.call("GET", path_of("pods", NAMESPACE), None, waiting)["items"]:
        time.sleep(LOOK_SECONDS)
    return {"podsPerSecond": pods / exist, "secondsToPods": exist, "secondsToRunning": time.time() - at}


def estimate(side: str, options: argparse.Namespace) -> float:
    """Seconds that one side takes in one round."""
    pods = options.jobs * Shape(options.workers).pods
    rates = durations.MANY_JOBS if options.jobs > 1 else durations.ONE_JOB
    return durations.made(pods, rates, side) + (1 if side == "bare" else 2) * durations.changed(pods)


SCENARIO = OnTestbed(
    name="burst",
    title="Many jobs applied at once",
    measure=measure,
    sides=("dtjob", "tfjob", "tfjob-tuned", "bare"),
    slow=("tfjob",),
    estimate=estimate,
    options={"jobs": (500, "jobs"), "workers": (WORKERS, "workers of each job, beside its chief")},
    units={
        "podsPerSecond": "pods a second until every pod exists",
        "secondsToPods": "seconds until every pod exists",
        "secondsToRunning": "seconds until every job is Running",
        "secondsToSucceeded": "seconds from the pods' end until every job has Succeeded",
        "requestsPerJobToRunning": "requests a job until all run",
        "requestsPerJob": "requests a job in all (no Events, deletes)",
        "eventsPerJob": "calls for Events a job",
        "cpuMillisecondsPerPodToRunning": "CPU ms a pod until all run",
        "cpuMillisecondsPerPod": "CPU ms a pod in all",
        "cpuSecondsOfStart": "CPU s of the start and the warm-up",
        "peakMegabytes": "peak memory, MB",
        "storedBytesPerJob": "bytes in etcd a job, all running",
    },
    goals=(
        Goal("podsPerSecond", "dtjob", "bare", "at least", 0.7),
        Goal("podsPerSecond", "dtjob", "tfjob-tuned", "at least", 2),
        Goal("podsPerSecond", "dtjob", "tfjob", "at least", 20),
        Goal("cpuMillisecondsPerPod", "dtjob", "tfjob", "at most", 1),
        Goal("requestsPerJob", "dtjob", None, "at most", WORKERS + 1 + 6),
    ),
)


if __name__ == "__main__":
    run(SCENARIO, __doc__)
