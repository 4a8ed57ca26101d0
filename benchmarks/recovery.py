# SPDX-License-Identifier: Apache-2.0
"""Seconds from kill -9 of a worker to the next new step: dtjob, and TensorFlow with all processes started again."""

import os
import signal
import time
from pathlib import Path

from benchmarks.by_hand import HandWritten
from benchmarks.rounds import take_turns
from tests.trainer.support.local_runs import LocalRun, Statuses, manifest

GROUP = {"chief": 1, "worker": 2}
BEFORE, EVERY = 50, 40
"""The step after which the worker is killed, and steps between saves."""


def by_dtjob(directory: Path) -> float:
    """`dtjob run` of the digits example without its evaluator."""
    directory.mkdir(parents=True)
    replicas = {"chief": {}, "worker": {"replicas": 2}}
    checkpoint = {"storage": {"volume": {"emptyDir": {}}}, "everySteps": EVERY}
    file = manifest("digits.yaml", directory / "job.yaml", 60, replicaSpecs=replicas, checkpoint=checkpoint)
    with LocalRun(file, directory / "work") as run:
        return seconds_to_new_step(run, BEFORE, "worker-1")


def seconds_to_new_step(run: LocalRun, after: int, victim: str) -> float:
    """Seconds from kill -9 of the training process of the task `victim`, once step `after` is done, to a step of the
    chief's next process that is later than the one that it restored."""
    before = run.wait_for_step(after)
    os.kill(before[victim]["trainingPid"], signal.SIGKILL)
    killed = time.monotonic()

    def new_step(statuses: Statuses) -> bool:
        chief = statuses.get("chief-0", {})
        again = chief.get("trainingPid") != before["chief-0"]["trainingPid"]
        return again and chief.get("state") == "training" and chief["step"] > chief.get("restoredStep", 0)

    run.wait_until(new_step, "a new step")
    return time.monotonic() - killed


def by_hand(directory: Path) -> float:
    """The hand-written loop; whoever watches it starts all tasks again as soon as all have ended."""
    file = directory / "steps"
    with HandWritten(directory, GROUP, str(file), "60", str(directory / "checkpoints"), str(EVERY)) as run:
        run.start()
        while not (file.exists() and _last(file)[0] >= BEFORE):
            time.sleep(0.01)
            if run.processes["chief-0"].poll() is not None:
                raise RuntimeError((directory / "chief-0.log").read_text(errors="replace"))
        run.processes["worker-1"].kill()
        killed = time.time()
        run.wait()
        lines = len(file.read_text().splitlines())
        run.start()
        while len(file.read_text().splitlines()) <= lines:
            time.sleep(0.01)
            if run.processes["chief-0"].poll() is not None:
                raise RuntimeError((directory / "chief-0.log").read_text(errors="replace"))
        return float(file.read_text().splitlines()[lines].split()[1]) - killed


def _last(file: Path) -> tuple[int, float]:
    """The last whole line of a file of steps: (step, time); (0, 0.0) where there is none."""
    lines = file.read_text().split("\n")[:-1]
    return (int(lines[-1].split()[0]), float(lines[-1].split()[1])) if lines else (0, 0.0)


if __name__ == "__main__":
    take_turns("secondsToNextStep", __doc__, by_dtjob, by_hand)
