# SPDX-License-Identifier: Apache-2.0
"""Seconds from the command to the first step: `dtjob run`, and TensorFlow with every process started at once."""

import time
from pathlib import Path

from benchmarks.by_hand import HandWritten
from benchmarks.rounds import take_turns
from tests.trainer.support.local_runs import LocalRun, manifest

GROUP = {"chief": 1, "worker": 2}


def by_dtjob(directory: Path) -> float:
    """`dtjob run` of the digits example without its evaluator."""
    directory.mkdir(parents=True)
    replicas = {"chief": {}, "worker": {"replicas": 2}}
    file = manifest("digits.yaml", directory / "job.yaml", 20, replicaSpecs=replicas)
    began = time.monotonic()
    with LocalRun(file, directory / "work") as run:
        run.wait_for_step(1)
        return time.monotonic() - began


def by_hand(directory: Path) -> float:
    """The hand-written loop: a Python process for each task, each with imports of its own."""
    file = directory / "steps"
    began = time.time()
    with HandWritten(directory, GROUP, str(file), "20", str(directory / "checkpoints"), "1000") as run:
        run.start()
        while not (file.exists() and "\n" in file.read_text()):
            time.sleep(0.01)
            if run.processes["chief-0"].poll() is not None:
                raise RuntimeError((directory / "chief-0.log").read_text(errors="replace"))
        return float(file.read_text().split()[1]) - began


if __name__ == "__main__":
    take_turns("secondsToFirstStep", __doc__, by_dtjob, by_hand)
