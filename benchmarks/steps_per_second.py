"""Steps per second of dt.fit against a hand-written tf.distribute loop, both under MultiWorkerMirrored on loopback."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.by_hand import HandWritten
from tests.trainer.support.harness import Cluster

PROGRAMS = Path(__file__).parent / "programs"
GROUP = {"chief": 1, "worker": 1}
WARM_UP = 3
"""Epochs that do not count: tracing and the first reads."""


def rate(file: Path) -> float:
    """Median steps per second of a program's epochs after the first ones."""
    told = json.loads(file.read_text())
    return float(told["steps"] / statistics.median(told["seconds"][WARM_UP:]))


def by_dtjob(directory: Path, epochs: int) -> float:
    """One run of dt.fit."""
    file = directory / "seconds.json"
    with Cluster(directory, "MultiWorkerMirrored", GROUP, PROGRAMS / "by_dtjob.py", str(file), str(epochs)) as run:
        run.run()
    return rate(file)


def by_hand(directory: Path, epochs: int) -> float:
    """One run of the hand-written loop."""
    file = directory / "seconds.json"
    with HandWritten(directory, GROUP, str(file), str(epochs)) as run:
        run.start()
        run.expect_success()
    return rate(file)


def main() -> None:
    """Take turns, and print both medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=30)
    options = parser.parse_args()
    rates: dict[str, list[float]] = {"dtjob": [], "byHand": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            sides = [("dtjob", by_dtjob), ("byHand", by_hand)]
            for name, measure in sides if number % 2 == 0 else reversed(sides):  # neither always comes first
                rates[name].append(measure(Path(folder) / f"{name}-{number}", options.epochs))
    medians = {name: statistics.median(each) for name, each in rates.items()}
    result = {"stepsPerSecond": medians, "ratio": medians["dtjob"] / medians["byHand"], "rounds": rates}
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
