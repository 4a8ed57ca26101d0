# SPDX-License-Identifier: Apache-2.0
"""One job of a thousand workers: until every pod exists, and what etcd holds of it then.

Each pod of TFJob carries the addresses of all, so that what is stored grows with the square of the workers. dtjob keeps
them once, in a ConfigMap.
"""

from benchmarks.operators.burst import estimate, measure
from benchmarks.operators.rounds import OnTestbed, run
from benchmarks.operators.statistics import Goal

WORKERS = 1000

SCENARIO = OnTestbed(
    name="big_job",
    title="One job of a thousand workers",
    measure=measure,
    sides=("dtjob", "tfjob", "tfjob-tuned", "bare"),
    slow=("tfjob",),
    estimate=estimate,
    options={"jobs": (1, "such jobs"), "workers": (WORKERS, "workers of the job, beside its chief")},
    units={
        "secondsToPods": "seconds until every pod exists",
        "secondsToRunning": "seconds until the job is Running",
        "requestsPerJobToRunning": "requests until it runs",
        "cpuMillisecondsPerPodToRunning": "CPU ms a pod until it runs",
        "peakMegabytes": "peak memory, MB",
        "storedBytesPerJob": "bytes in etcd, the job running",
    },
    goals=(
        Goal("secondsToPods", "dtjob", "bare", "at most", 1.5),
        Goal("secondsToPods", "dtjob", "tfjob-tuned", "at most", 1 / 3),
        Goal("storedBytesPerJob", "dtjob", "tfjob-tuned", "at most", 1 / 6),
    ),
)


if __name__ == "__main__":
    run(SCENARIO, __doc__)
