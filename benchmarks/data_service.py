# SPDX-License-Identifier: Apache-2.0
"""Steps a second of training that waits for decoded images: in the training pod, and with 1, 2 and 4 data workers.

Each run is `dtjob run` of examples/images.py. The runs take turns. They are measured twice:

- with a limit: Each task gets the same share of a core, as a pod with `limits.cpu`. So a data worker adds processor
  time, as another pod on another node does. This needs root, since it makes cgroups.
- without: All tasks share the cores of this machine. So data workers add nothing, and the service shows what it costs.

Processor time a step depends little on other work on the machine.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import processes
from tests.trainer.support.local_runs import LocalRun, manifest

CHECKPOINTS: dict[str, Any] = {"storage": {"volume": {"emptyDir": {}}}}
IMAGES = 8192
"""So many that no epoch ends while a run is measured: training pods would decode the images of the validation."""
WARM_UP_SECONDS = 8.0
"""The buffers that were filled without a limit are empty again after it."""
POLL_SECONDS = 0.02
PERIOD_MICROSECONDS = 20_000
"""Of a limit. Kubelets take 100,000. Tasks that wait for each other then stand still for a long time."""
CGROUPS = Path("/sys/fs/cgroup")


class Measured(NamedTuple):
    """One run."""

    steps_per_second: float
    training_ms: float
    """Processor milliseconds a step of the training pod."""
    data_ms: float
    """Those of all data workers together."""


class Limit:
    """A share of a core for each task, by cgroups (v1 or v2). Use as a context manager: it removes them."""

    def __init__(self, cores: float | None) -> None:
        self._cores, self._made = cores, list[Path]()
        self._top = CGROUPS / "cpu" if (CGROUPS / "cpu").is_dir() else CGROUPS

    def __enter__(self) -> "Limit":
        return self

    def __exit__(self, *_: object) -> None:
        for cgroup in self._made:
            while (cgroup / "cgroup.procs").read_text():  # killed, and not yet reaped
                time.sleep(POLL_SECONDS)
            cgroup.rmdir()

    def hold(self, task: str, pids: Sequence[int]) -> None:
        """Give these processes of a task the share together."""
        if self._cores is None:
            return
        quota = round(self._cores * PERIOD_MICROSECONDS)
        cgroup = self._top / f"dtjob-benchmark-{os.getpid()}-{task}"
        cgroup.mkdir()
        self._made.append(cgroup)
        if (cgroup / "cpu.max").exists():
            (cgroup / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")
        else:
            (cgroup / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (cgroup / "cpu.cfs_quota_us").write_text(str(quota))
        for pid in pids:
            (cgroup / "cgroup.procs").write_text(str(pid))


def measure(directory: Path, workers: int, cores: float | None, seconds: float) -> Measured:
    """One run, for so many seconds. `cores`: the limit of each task."""
    directory.mkdir()
    roles = {"chief": {}, **({"data": {"replicas": workers}} if workers else {})}
    program = {"entrypoint": "examples/images.py", "args": [f"--images={IMAGES}"]}
    file = manifest(
        "images.yaml", directory / "job.yaml", 1, program=program, replicaSpecs=roles, checkpoint=CHECKPOINTS
    )
    with Limit(cores) as limit, LocalRun(file, directory / "work") as run:
        run.wait_until(
            lambda now: sum(one["state"] == "serving" for one in now.values()) == workers, f"{workers} data workers"
        )
        run.wait_for_step(1)
        tasks = _tasks(run)
        for task, pids in tasks.items():
            limit.hold(task, pids)
        steps = _steps(run)
        began, first = _after(steps, time.monotonic() + WARM_UP_SECONDS)
        before = _spent(tasks)
        ended, last = _after(steps, began + seconds)
        spent = {task: now - before[task] for task, now in _spent(tasks).items()}
        run.process.kill()
    done = last - first
    training = spent.pop("chief-0")
    return Measured(done / (ended - began), 1000 * training / done, 1000 * sum(spent.values()) / done)


def _tasks(run: LocalRun) -> dict[str, list[int]]:
    """Task to its processes."""
    found: dict[str, list[int]] = {}
    for pid, environment in run.processes().items():
        found.setdefault(f"{environment['DTJOB_ROLE']}-{environment['DTJOB_INDEX']}", []).append(pid)
    return found


def _steps(run: LocalRun) -> Iterator[tuple[float, int]]:
    """The moment of each report of the chief, in seconds, and its step. Looks at one process only."""
    environments = run.processes().values()
    port = next(one["DTJOB_STATUS_PORT"] for one in environments if one["DTJOB_ROLE"] == "chief")
    last = 0
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=60) as answer:
            status = json.load(answer)
        if status["state"] != "training":
            raise RuntimeError(f"the run was measured for too long: {status}")
        if status["step"] != last:
            last = status["step"]
            yield time.monotonic(), last
        time.sleep(POLL_SECONDS)


def _after(steps: Iterator[tuple[float, int]], moment: float) -> tuple[float, int]:
    """The first report after a moment."""
    return next(one for one in steps if one[0] > moment)


def _spent(tasks: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """Processor seconds of each task so far."""
    return {task: processes.cpu_seconds(pids).total() for task, pids in tasks.items()}


def summary(runs: Sequence[Measured]) -> dict[str, object]:
    """The medians, and the slowest and fastest run."""
    speeds = [run.steps_per_second for run in runs]
    return {
        "stepsPerSecond": round(statistics.median(speeds), 2),
        "from": round(min(speeds), 2),
        "to": round(max(speeds), 2),
        "trainingMsPerStep": round(statistics.median(run.training_ms for run in runs)),
        "dataMsPerStep": round(statistics.median(run.data_ms for run in runs)),
    }


def main() -> None:
    """Print one JSON object: the limit in cores, to the number of data workers (0: none), to its summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--limits", type=float, nargs="+", default=[0.1, 0], help="cores of a task; 0: no limit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="for which a run is measured")
    options = parser.parse_args()
    cases = [(limit, workers) for limit in options.limits for workers in options.workers]
    runs: dict[tuple[float, int], list[Measured]] = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as directory:
        for number in range(options.rounds):
            for limit, workers in cases if number % 2 == 0 else reversed(cases):  # none always comes first
                folder = Path(directory) / f"{number}-{limit}-{workers}"
                runs[limit, workers].append(measure(folder, workers, limit or None, options.seconds))
                print(limit, workers, runs[limit, workers][-1], file=sys.stderr)
    found: dict[str, dict[str, object]] = {}
    for (limit, workers), measured in runs.items():
        found.setdefault(f"{limit:g}" if limit else "none", {})[str(workers)] = summary(measured)
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
