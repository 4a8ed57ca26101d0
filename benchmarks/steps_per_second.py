# SPDX-License-Identifier: Apache-2.0
"""Steps per second of dt.fit, and of Model.fit in a job, against a hand-written tf.distribute loop and Model.fit alone.

Every side of a row (a model, a kind of data) is a process of its own that trains an epoch when it is its turn: a ratio
is the median of those of two epochs that were trained right after each other. Prints a table for README.md.
"""

import argparse
import os
import select
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from benchmarks.by_hand import HandWritten
from benchmarks.programs.sizes import ON_CPUS, STEPS
from tests.trainer.support.harness import Cluster

PROGRAM = Path(__file__).parent / "programs" / "one_side.py"
SIDES = ("dtjob", "dtjob-jit", "job", "hand", "keras", "keras-jit")
IN_A_JOB = ("dtjob", "job")
"""How the names of those sides begin that are started as tasks of a job."""
KINDS = ("arrays", "dataset", "unknown", "callback")
SIDES_OF = {"callback": ("dtjob", "dtjob-jit", "job", "keras", "keras-jit")}
"""Of kinds that not every side has: the loop by hand calls no callbacks."""
GROUP = "MultiWorkerMirrored"
POLL_SECONDS = 1.0
"""How often to look whether a side that has not told anything still runs."""
WARM_UP = 2
"""Epochs that do not count: tracing, compiling and the first reads."""


class Side:
    """One side of a row; `epoch` trains one and returns its seconds."""

    def __init__(self, go: IO[str], told: IO[str], runs: Callable[[], bool]) -> None:
        self._go, self._told, self._runs = go, told, runs

    def epoch(self) -> float:
        """Train an epoch. Raises RuntimeError where the process has ended."""
        print(file=self._go)
        while not select.select([self._told], [], [], POLL_SECONDS)[0]:
            if not self._runs():
                raise RuntimeError("a side has ended before its turns were over")
        return float(self._told.readline())


@contextmanager
def running(name: str, row: Sequence[str], options: Sequence[str], epochs: int, folder: Path) -> Iterator[Side]:
    """The side of this name on a row (model, kind of data) under `options` (strategy, policy of types)."""
    strategy = options[0]
    folder.mkdir()
    for fifo in ("go", "told"):
        os.mkfifo(folder / fifo)
    arguments = (name, *row, *options, str(epochs), str(folder))
    counts = {"chief": 1, "worker": 1} if strategy == GROUP else {"chief": 1}
    with ExitStack() as stack:
        if name.startswith(IN_A_JOB):
            cluster = stack.enter_context(Cluster(folder / "run", strategy, counts, PROGRAM, *arguments))
            cluster.start()
            processes = [member.process for member in cluster.members.values()]
        else:
            by_hand = stack.enter_context(HandWritten(folder / "run", counts, *arguments, program=PROGRAM))
            by_hand.start()
            processes = list(by_hand.processes.values())
        # opened both ways, so that neither end waits for the other to open it
        go, told = (os.open(folder / fifo, os.O_RDWR) for fifo in ("go", "told"))
        ends = stack.enter_context(os.fdopen(go, "w", buffering=1)), stack.enter_context(os.fdopen(told))
        yield Side(*ends, lambda: all(process.poll() is None for process in processes))


def measured(row: Sequence[str], sides: Sequence[str], options: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """The seconds of each side's epochs, round by round."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        run = {}
        for name in sides:
            side = running(name, row, options, WARM_UP + rounds, Path(directory) / name)
            run[name] = stack.enter_context(side)
            for _ in range(WARM_UP):
                run[name].epoch()
        for number in range(rounds):
            for name in sides if number % 2 == 0 else reversed(sides):  # none always comes first
                seconds[name].append(run[name].epoch())
    return seconds


def ratio(others: list[float], mine: list[float]) -> float:
    """How many times as fast, as the median of the rounds."""
    return statistics.median(other / each for other, each in zip(others, mine, strict=True))


def cells(model: str, seconds: dict[str, list[float]], sides: Sequence[str]) -> list[str]:
    """A row's steps per second of dt.fit, and what that is of each other side, if it was measured."""
    mine = seconds["dtjob"]
    rate = STEPS[model] / statistics.median(mine)
    others = [f"{ratio(seconds[side], mine):.2f}" if side in seconds else "" for side in sides]
    return [f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}", *others]


def _names(known: Sequence[str]) -> dict[str, object]:
    return {"nargs": "+", "choices": list(known), "default": list(known)}


def main() -> None:
    """Measure each row, and print the table as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=list(STEPS), default=list(ON_CPUS))
    parser.add_argument("--kinds", **_names(KINDS))  # type: ignore[arg-type]
    parser.add_argument("--sides", **_names(SIDES))  # type: ignore[arg-type]
    parser.add_argument("--strategy", choices=["Default", "OneDevice", "Mirrored", GROUP], default="Default")
    parser.add_argument("--policy", default="float32", help="Keras's policy of types, such as mixed_float16")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    known = ("dtjob", "job", "hand") if options.strategy == GROUP else SIDES  # Model.fit alone does not train there
    others = [side for side in known if side in options.sides and side != "dtjob"]
    print("| model | data | dt.fit, steps a second |", *(f"times {side} |" for side in others))
    print("|---|---|---:|" + "---:|" * len(others))
    for model in options.models:
        for kind in options.kinds:
            sides = [side for side in ("dtjob", *others) if side in SIDES_OF.get(kind, SIDES)]
            seconds = measured((model, kind), sides, (options.strategy, options.policy), options.rounds)
            print(f"| {model} | {kind} |", *(f"{cell} |" for cell in cells(model, seconds, others)))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
