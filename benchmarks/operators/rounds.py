# SPDX-License-Identifier: Apache-2.0
"""What every scenario's command does: rounds in which the sides take turns on one API server, then the report."""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from benchmarks.operators import report
from benchmarks.operators.durations import START_SECONDS
from benchmarks.operators.jobs import NAMESPACE, SUCCEEDED, Shape, ended
from benchmarks.operators.observed import Jobs
from benchmarks.operators.sides import SIDES, Dtjob, Place, Side
from benchmarks.operators.statistics import Goal, Numbers
from benchmarks.operators.testbed import PEER, Testbed
from benchmarks.peers.bare_loop import Call
from tools import binaries
from tools.cluster.rest import path_of
from tools.programs import BENCHMARKS, TOOLS

RESULTS = Path(__file__).resolve().parents[1] / "results"
_SETTLE_SECONDS = 1.0


class Participant(Protocol):
    """A side, of whatever kind."""

    name: str

    def start(self, bed: Any) -> None:
        """Start what is measured; it is ready when this returns."""

    def stop(self) -> None:
        """Stop it."""


B = TypeVar("B", bound=Place)
S = TypeVar("S", bound=Participant)


@dataclass(frozen=True, kw_only=True)
class Scenario(ABC, Generic[B, S]):
    """One comparison of sides S on a bed B. `measure` gives one side's numbers in one round, given the scenario's
    options; `units` says what each number is, with its unit; `estimate` how many seconds the first of them takes."""

    name: str
    title: str
    measure: Callable[[B, S, argparse.Namespace], Numbers]
    estimate: Callable[[str, argparse.Namespace], float]
    sides: tuple[str, ...]
    slow: tuple[str, ...] = ()
    """Sides that may take part in the first rounds only (`--slow-rounds`)."""
    units: dict[str, str]
    goals: tuple[Goal, ...] = ()
    rounds: int = 5
    options: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Whole-numbered options: default and help."""
    command: str = ""
    """How it is called; its module and the name where left out."""

    @abstractmethod
    def bed(self, names: Sequence[str]) -> B:
        """What these sides run on, not started. Programs are built first, where they are missing."""

    @abstractmethod
    def side(self, name: str, options: argparse.Namespace) -> S:
        """One side."""

    def prepare(self, bed: B, side: S) -> None:
        """What is done with a side that has started before it is measured."""

    def programs(self, names: Sequence[str]) -> tuple[str, ...]:
        """The programs that these sides need."""
        return needed(names)


class OnTestbed(Scenario[Testbed, Side]):
    """With kwok in place of kubelets."""

    def bed(self, names: Sequence[str]) -> Testbed:
        """The API server, and what runs beside it."""
        return Testbed(binaries.find(self.programs(names), say=say))

    def side(self, name: str, options: argparse.Namespace) -> Side:
        """One of SIDES."""
        return Dtjob(options.profile) if name == "dtjob" else SIDES[name]()

    def prepare(self, bed: Testbed, side: Side) -> None:
        """A job that lives from its beginning to its end."""
        if not side.bare:
            _warm_up(bed, side)


def run(scenario: Scenario[B, S], description: str | None, arguments: Sequence[str] | None = None) -> None:
    """The scenario's command: measure, and write table, plot and numbers."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser(scenario, description).parse_args(arguments)
    names = options.sides or scenario.sides
    say(forecast(scenario, names, options))
    if options.estimate:
        return
    chosen = {key: value for key, value in vars(options).items() if key not in ("out", "profile", "sides", "estimate")}
    command = scenario.command or f"python -m benchmarks.operators.{scenario.name}"
    result: dict[str, Any] = {
        "scenario": scenario.name,
        "title": scenario.title,
        "when": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "command": f"{command} {' '.join(arguments)}".rstrip(),
        "options": chosen,
        "machine": machine(),
        "versions": versions(scenario.programs(names)),
        "rounds": [],
    }
    began = time.monotonic()
    try:
        _measure_all(scenario, [scenario.side(name, options) for name in names], options, result["rounds"])
    finally:  # what was measured until then is not lost
        result["rounds"] = list(filter(None, result["rounds"]))
        result["tookSeconds"] = round(time.monotonic() - began)
        result["machine"]["loadAtTheEnd"] = _load()
        result["goals"] = report.verdicts(result["rounds"], scenario.goals)
        if any(result["rounds"]):
            print(report.table(result, scenario.units, scenario.goals))
            if options.out:
                report.write(result, scenario.units, scenario.goals, options.out)


def _measure_all(
    scenario: Scenario[B, S], sides: Sequence[S], options: argparse.Namespace, rounds: list[dict[str, Numbers]]
) -> None:
    """Append a round after the other to `rounds`, with the numbers of each side as they come."""
    with scenario.bed([side.name for side in sides]) as bed:
        for number in range(options.rounds):
            rounds.append({})
            for side in in_turn(sides, number):
                if takes_part(scenario, side.name, number, options):
                    rounds[-1][side.name] = _one(bed, side, scenario, options)
                    say(f"round {number + 1}, {side.name}: {json.dumps(rounds[-1][side.name])}")


def forecast(scenario: Scenario[B, S], names: Sequence[str], options: argparse.Namespace) -> str:
    """How long it will take on a quiet machine, in words."""
    counts = {
        name: sum(takes_part(scenario, name, number, options) for number in range(options.rounds)) for name in names
    }
    seconds = {name: scenario.estimate(name, options) for name in names}
    each = ", ".join(f"{name} {counts[name]} × {seconds[name]:.0f} s" for name in names)
    minutes = (START_SECONDS + sum(counts[name] * seconds[name] for name in names)) / 60
    return f"{scenario.name}: about {minutes:.1f} minutes on two quiet cores ({each})"


def takes_part(scenario: Scenario[B, S], name: str, number: int, options: argparse.Namespace) -> bool:
    """Whether a side is measured in this round, counted from 0."""
    return name not in scenario.slow or options.slow_rounds is None or number < options.slow_rounds


def in_turn(sides: Sequence[S], number: int) -> list[S]:
    """The sides in the order of this round: each round begins with another one."""
    first = number % len(sides)
    return [*sides[first:], *sides[:first]]


def needed(names: Sequence[str]) -> tuple[str, ...]:
    """The programs that these sides need."""
    return (*BENCHMARKS, *((PEER,) if any(name.startswith("tfjob") for name in names) else ()))


def _one(bed: B, side: S, scenario: Scenario[B, S], options: argparse.Namespace) -> Numbers:
    side.start(bed)
    try:
        scenario.prepare(bed, side)
        return scenario.measure(bed, side, options)
    finally:
        side.stop()
        bed.clear()


def _warm_up(bed: Testbed, side: Side) -> None:
    """Let a job live from its beginning to its end: what is done once is done, and the operator surely watches."""
    with Jobs(bed.api, side.resource, side.phase_of) as jobs:
        run_to_the_end(bed, side, jobs, ["warm-up"], Shape(workers=1))
    bed.delete_jobs(side.resource)
    time.sleep(_SETTLE_SECONDS)


def run_to_the_end(bed: Testbed, side: Side, jobs: Jobs, names: Sequence[str], shape: Shape) -> tuple[float, float]:
    """Apply the jobs, let all their pods end well once all run; when the last ran, and when the last had succeeded."""
    calls = bed.calls([side.applying(side.job(name, shape)) for name in names])
    calls.go()
    calls.wait()
    running = jobs.wait_phase("Running", len(names))
    return running, end_all(bed, jobs, len(names))


def end_all(bed: Testbed, jobs: Jobs, number: int) -> float:
    """Let all pods that are there end well; when the last of so many jobs had succeeded."""
    ending = bed.calls(ends(bed))
    ending.go()
    ending.wait()
    return jobs.wait_phase(SUCCEEDED, number)


def ends(bed: Testbed, exit_code: int = 0) -> list[Call]:
    """The calls by which all pods end."""
    return [
        Call(
            "PATCH",
            path_of("pods", pod["metadata"]["namespace"], pod["metadata"]["name"], "status"),
            ended(pod, exit_code),
        )
        for pod in bed.api.list("pods", NAMESPACE)
    ]


def parser(scenario: Scenario[B, S], description: str | None) -> argparse.ArgumentParser:
    """The scenario's options."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    made.add_argument("--rounds", type=int, default=scenario.rounds, help="how often each side is measured")
    if scenario.slow:
        slow = ", ".join(scenario.slow)
        made.add_argument("--slow-rounds", type=int, help=f"leave {slow} out after so many rounds", metavar="ROUNDS")
    for name, (default, what) in scenario.options.items():
        made.add_argument(f"--{name}", type=int, default=default, help=what)
    known = ", ".join(scenario.sides)
    made.add_argument("--sides", nargs="+", choices=scenario.sides, metavar="SIDE", help=f"only these of {known}")
    made.add_argument("--out", type=Path, help=f"the directory for numbers, table and plot, such as {RESULTS.name}/")
    if isinstance(scenario, OnTestbed):
        made.add_argument("--profile", type=Path, help="the file for cProfile's statistics of dtjob (slows it down)")
    made.add_argument("--estimate", action="store_true", help="only say how long it would take")
    return made


def machine() -> dict[str, Any]:
    """What it runs on, and the load of the last minute before."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    found = {"cores": os.cpu_count(), "cpu": model, "memoryGiB": memory, "kernel": platform.release()}
    return {**found, "loadBefore": _load()}


def _load() -> float:
    """Of the last minute."""
    return round(os.getloadavg()[0], 1)


def versions(programs: Sequence[str]) -> dict[str, str]:
    """Of what was measured, with its commit, and of what it ran on."""
    python = {name: metadata.version(name) for name in ("dtjob", "kopf", "kubernetes", "aiohttp")}
    pinned = {name: TOOLS[name].version for name in programs if name != "kubectl"}
    return {"commit": _commit(), "python": platform.python_version(), **python, **pinned}


def _commit() -> str:
    """What is checked out, `-dirty` where something but results was changed."""
    git = ["git", "-C", str(RESULTS.parents[1])]
    found = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False)
    changed = [*git, "diff", "--quiet", "HEAD", "--", ".", f":!{RESULTS.parent.name}/{RESULTS.name}"]
    if found.returncode:
        return "unknown"
    return found.stdout.strip() + ("-dirty" if subprocess.run(changed, check=False).returncode else "")


def say(line: str) -> None:
    """For whoever waits."""
    print(line, file=sys.stderr, flush=True)
