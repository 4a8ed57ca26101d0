"""What every scenario's command does: rounds in which the sides take turns on one API server, then the report."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.operators import report
from benchmarks.operators.jobs import NAMESPACE, SUCCEEDED, Shape, ended
from benchmarks.operators.observed import Jobs
from benchmarks.operators.sides import SIDES, Dtjob, Side
from benchmarks.operators.statistics import Goal, Numbers
from benchmarks.operators.testbed import PEER, Testbed
from benchmarks.peers.bare_loop import Call
from tools import binaries
from tools.cluster.rest import path_of
from tools.programs import BENCHMARKS, TOOLS

RESULTS = Path(__file__).resolve().parents[1] / "results"
_SETTLE_SECONDS = 1.0


@dataclass(frozen=True)
class Scenario:
    """One comparison. `measure` gives one side's numbers in one round, given the scenario's options; `units` says what
    each number is, with its unit."""

    name: str
    title: str
    measure: Callable[[Testbed, Side, argparse.Namespace], Numbers]
    sides: tuple[str, ...]
    jobs: int
    units: dict[str, str]
    goals: tuple[Goal, ...] = ()
    options: dict[str, tuple[int, str]] = field(default_factory=dict)
    """More whole-numbered options: default and help."""


def run(scenario: Scenario, description: str | None, arguments: Sequence[str] | None = None) -> None:
    """The scenario's command: measure, and write table, plot and numbers."""
    options = _parser(scenario, description).parse_args(arguments)
    names = options.sides or scenario.sides
    began = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    programs = binaries.find(needed(names), say=_say)
    sides = [Dtjob(options.profile) if name == "dtjob" else SIDES[name]() for name in names]
    rounds: list[dict[str, Numbers]] = []
    with Testbed(programs) as bed:
        for number in range(options.rounds):
            rounds.append({})
            for side in in_turn(sides, number):
                rounds[-1][side.name] = _one(bed, side, scenario, options)
                _say(f"round {number + 1}, {side.name}: {json.dumps(rounds[-1][side.name])}")
    chosen = {key: value for key, value in vars(options).items() if key not in ("out", "profile", "sides")}
    command = f"python -m benchmarks.operators.{scenario.name} {' '.join(arguments or sys.argv[1:])}".rstrip()
    about = {"when": began, "command": command, "options": chosen, "machine": machine(), "versions": versions(names)}
    result: dict[str, Any] = {"scenario": scenario.name, "title": scenario.title, **about, "rounds": rounds}
    print(report.table(result, scenario.units, scenario.goals))
    if options.out:
        report.write(result, scenario.units, scenario.goals, options.out)


def in_turn(sides: Sequence[Side], number: int) -> list[Side]:
    """The sides in the order of this round: each round begins with another one."""
    first = number % len(sides)
    return [*sides[first:], *sides[:first]]


def needed(names: Sequence[str]) -> tuple[str, ...]:
    """The programs that these sides need."""
    return (*BENCHMARKS, *((PEER,) if any(name.startswith("tfjob") for name in names) else ()))


def _one(bed: Testbed, side: Side, scenario: Scenario, options: argparse.Namespace) -> Numbers:
    side.start(bed)
    try:
        if not side.bare:
            _warm_up(bed, side)
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


def _parser(scenario: Scenario, description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each side is measured")
    parser.add_argument("--jobs", type=int, default=scenario.jobs, help="how many jobs")
    for name, (default, what) in scenario.options.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=what)
    known = ", ".join(scenario.sides)
    parser.add_argument("--sides", nargs="+", choices=scenario.sides, metavar="SIDE", help=f"only these of {known}")
    parser.add_argument("--out", type=Path, help=f"the directory for numbers, table and plot, such as {RESULTS.name}/")
    parser.add_argument("--profile", type=Path, help="the file for cProfile's statistics of dtjob (slows it down)")
    return parser


def machine() -> dict[str, Any]:
    """What it runs on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    load = round(os.getloadavg()[0], 1)
    return {"cores": os.cpu_count(), "cpu": model, "memoryGiB": round(memory / 2**30), "loadAtTheEnd": load}


def versions(sides: Sequence[str]) -> dict[str, str]:
    """Of what was measured, and of what it ran on."""
    python = {name: metadata.version(name) for name in ("dtjob", "kopf", "kubernetes", "aiohttp")}
    programs = {name: TOOLS[name].version for name in needed(sides) if name != "kubectl"}
    return {"python": platform.python_version(), **python, **programs}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
