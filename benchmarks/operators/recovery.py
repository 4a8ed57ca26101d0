# SPDX-License-Identifier: Apache-2.0
"""Recovery and goodput of training on real nodes: one task after the other is killed (kill -9), one each minute.

Each side trains the same model on the same data, saving as often; a group of chief and two workers, under
ParameterServer with a ps besides. The chief notes each step. A recovery lasts from the kill to the next step that was
not done before. Goodput is the part of the time that went into steps which stand. A task that does not run when it is
its turn is killed as soon as it runs. What is killed is the process of its container that has the most memory, as by
the kernel for want of memory, which is the one that trains.
"""

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.operators import goodput
from benchmarks.operators.goodput import Note
from benchmarks.operators.jobs import NAMESPACE
from benchmarks.operators.node_bed import NodeBed, StepFile
from benchmarks.operators.rounds import Scenario, run, say
from benchmarks.operators.statistics import Goal, Numbers
from benchmarks.operators.testbed import PEER
from benchmarks.operators.training_jobs import GROUPS, SIDES, Training, Trains
from tools import binaries
from tools.programs import NODE

START_SECONDS = 600.0
"""A start may take so long on a machine with other work."""
QUIET_START_SECONDS = 30.0
LAST_SECONDS = 90.0
"""How long is waited for the recovery from the last failure."""
VICTIMS = {
    "MultiWorkerMirrored": (("worker", 0), ("chief", 0), ("worker", 1), ("chief", 0)),
    "ParameterServer": (("worker", 0), ("chief", 0), ("ps", 0), ("worker", 1), ("chief", 0), ("ps", 0)),
}
"""In this order, again and again."""
NAMES = {"MultiWorkerMirrored": "recovery", "ParameterServer": "recovery_ps"}
"""What the results are called."""
_RUNS = count()


@dataclass(frozen=True)
class Failure:
    """A task was killed, at this time of time.monotonic."""

    role: str
    at: float


Kill = Callable[[str, int, float], float | None]
"""Kills what trains of a task (role and index) as soon as it runs, before a time of the monotonic clock; when that was,
None where it did not run until then."""


def measure(bed: NodeBed, side: Trains, strategy: str, options: argparse.Namespace) -> Numbers:
    """One side, once."""
    training = Training(f"recovery-{next(_RUNS)}", strategy, bed.image, options.every)
    steps = StepFile(bed.volume(training.name))

    def kill(role: str, index: int, until: float) -> float | None:
        return bed.kill(side, training.name, role, index, until, bool(options.containers))

    bed.api.create(side.resource, NAMESPACE, side.training(training))
    try:
        applied = time.monotonic()
        if not steps.wait_step(training.every + 1, START_SECONDS):
            raise TimeoutError(f"{side.name} did not train:\n{bed.logs(side, training.name)}")
        began = time.monotonic()
        found = disturbed(steps, strategy, options, kill)
        if options.out:  # for whoever asks why
            _write_logs(options.out / "logs", f"{NAMES[strategy]}-{side.name}", bed.logs(side, training.name), steps)
        return {"secondsToStart": began - applied, **found}
    finally:
        bed.delete(side, training.name)


def disturbed(steps: StepFile, strategy: str, options: argparse.Namespace, kill: Kill) -> Numbers:
    """Kill one task after the other in training that has begun; what became of it."""
    began = time.monotonic()
    ended = began + options.seconds
    failures = _fail(strategy, options.interval, kill, began, ended)
    time.sleep(max(0.0, ended - time.monotonic()))
    limit = ended + LAST_SECONDS
    while failures and time.monotonic() < limit:
        if goodput.to_new_step(steps.notes(), failures[-1].at) is not None:
            break
        time.sleep(1.0)
    notes = steps.notes()
    say(", ".join(f"{failure.role} {_told(took)}" for failure, took in recoveries(notes, failures)))
    return numbers(notes, failures, began, ended)


def _told(seconds: float | None) -> str:
    return "not recovered" if seconds is None else f"{seconds:.2f} s"


def _write_logs(directory: Path, name: str, logs: str, steps: StepFile) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.log").write_text(logs)
    shutil.copy(steps.path, directory / f"{name}.steps")


def _fail(strategy: str, interval: int, kill: Kill, began: float, ended: float) -> list[Failure]:
    """Kill a task in the middle of each interval."""
    failures: list[Failure] = []
    for number, (role, index) in enumerate(islice(cycle(VICTIMS[strategy]), int((ended - began) / interval))):
        time.sleep(max(0.0, began + interval * (number + 0.5) - time.monotonic()))
        at = kill(role, index, ended)
        if at is not None:
            failures.append(Failure(role, at))
    return failures


def numbers(notes: Sequence[Note], failures: Sequence[Failure], began: float, ended: float) -> Numbers:
    """What the log of steps says of the time from `began` to `ended` and of its failures."""
    first = failures[0].at if failures else ended
    rate = goodput.rate(notes, began, first)
    kept = goodput.kept_steps(notes, began, ended)
    found: dict[str, float] = {
        "goodputPercent": 100 * goodput.kept_seconds(notes, began, ended) / (ended - began),
        "stepsPerSecond": rate,
        "failures": len(failures),
        "stepsRedone": goodput.steps_done(notes, began, ended) - kept,
    }
    if rate:
        found["stepsPercent"] = 100 * kept / (rate * (ended - began))
    each = recoveries(notes, failures)
    roles = sorted({failure.role for failure in failures})
    groups = {f"{role}Seconds": [took for failure, took in each if failure.role == role] for role in roles}
    half = len(each) // 2
    groups["earlierSeconds"] = [took for _, took in each[:half]]
    groups["laterSeconds"] = [took for _, took in each[half:]]
    for name, seconds in groups.items():
        if took := [one for one in seconds if one is not None]:
            found[name] = statistics.median(took)
    found["notRecovered"] = sum(took is None for _, took in each)
    return found


def recoveries(notes: Sequence[Note], failures: Sequence[Failure]) -> list[tuple[Failure, float | None]]:
    """Each failure, in order, with the seconds to the next new step; None where none came."""
    return [(failure, goodput.to_new_step(notes, failure.at)) for failure in failures]


def estimate(side: str, options: argparse.Namespace) -> float:
    """Seconds that one side takes in one round on a quiet machine."""
    return QUIET_START_SECONDS + float(options.seconds) + 10.0


OPTIONS = {
    "seconds": (600, "seconds of training that are looked at"),
    "interval": (60, "seconds between failures"),
    # By Young's rule sqrt(2 * 0.003 * 60) = 0.6 s for an asynchronous save that takes 3 ms: at 30 steps a second, 18.
    "every": (20, "steps between checkpoints"),
}
GOALS = (
    Goal("goodputPercent", "dtjob", None, "at least", 95),
    Goal("goodputPercent", "tfjob", None, "at most", 70),
    Goal("goodputPercent", "tfjob-onfailure", None, "at most", 70),
)
UNITS = {
    "workerSeconds": "seconds from a worker's kill to the next new step",
    "chiefSeconds": "seconds from the chief's kill to the next new step",
    "psSeconds": "seconds from a ps' kill to the next new step",
    "earlierSeconds": "seconds to the next new step, of the first half of the failures",
    "laterSeconds": "seconds to the next new step, of the second half",
    "goodputPercent": "goodput, % of the time",
    "stepsPercent": "steps that stand, % of those without a failure",
    "stepsRedone": "steps that were done again",
    "failures": "failures",
    "notRecovered": "failures without a new step after them",
    "stepsPerSecond": "steps a second before the first failure",
    "secondsToStart": "seconds from apply to the first checkpoint",
}


class OnNodes(Scenario[NodeBed, Trains]):
    """On real nodes."""

    def bed(self, names: Sequence[str]) -> NodeBed:
        """The cluster."""
        return NodeBed(binaries.find(self.programs(names), say=say))

    def side(self, name: str, options: argparse.Namespace) -> Trains:
        """One of SIDES."""
        return SIDES[name]()

    def programs(self, names: Sequence[str]) -> tuple[str, ...]:
        """The programs that these sides need."""
        return (*NODE, *((PEER,) if any(name.startswith("tfjob") for name in names) else ()))


def scenario(strategy: str) -> OnNodes:
    """The scenario under one of GROUPS."""

    def measure_it(bed: NodeBed, side: Trains, options: argparse.Namespace) -> Numbers:
        return measure(bed, side, strategy, options)

    return OnNodes(
        name=NAMES[strategy],
        title=f"Recovery and goodput under {strategy}",
        measure=measure_it,
        estimate=estimate,
        sides=tuple(SIDES),
        slow=("tfjob-onfailure", "dtjob-own-image"),
        command=f"python -m benchmarks.operators.recovery {strategy}",
        options={
            **OPTIONS,
            "containers": (0, "1: kill containers by their first process, dtjob's supervisor; 0: what trains in them"),
        },
        units=UNITS,
        goals=GOALS,
    )


def main(made: Callable[[str], Scenario[Any, Any]], description: str | None) -> None:
    """The command of a scenario that there is for each of GROUPS."""
    if len(sys.argv) < 2 or sys.argv[1] not in GROUPS:
        module = f"benchmarks.operators.{Path(sys.argv[0]).stem}"
        sys.exit(f"usage: python -m {module} {'|'.join(GROUPS)} [--help] [OPTION ...]")
    run(made(sys.argv[1]), description, sys.argv[2:])


if __name__ == "__main__":
    main(scenario, __doc__)
