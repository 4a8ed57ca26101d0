# SPDX-License-Identifier: Apache-2.0
"""The numbers of a scenario as a table, a plot and a file."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.operators.statistics import Goal, Spread, found_for, of_side, ratios, spread

OURS = "dtjob"
QUIET = 1.0
"""The highest load before the beginning with which seconds are worth something."""
_BESIDE = (
    "**A trial beside other work: counts, bytes and CPU time say something, seconds only that it ran to its end.**"
)
_INDEX_HEAD = """# Results

The recorded run of each scenario; what others came to is in [operators/](../operators/README.md). Where the load before
is more than 1 it was a trial beside other work: counts, bytes and CPU time say something then, seconds only that it ran
to its end.
"""


def table(result: Mapping[str, Any], units: Mapping[str, str], goals: Sequence[Goal]) -> str:
    """Markdown: medians of the sides (least to most), dtjob's ratio to each other side, and what was to hold."""
    rounds, sides = result["rounds"], _sides(result)
    others = [side for side in sides if side != OURS]
    head = ["", *sides, *(f"{OURS} / {side}" for side in others)]
    lines = [_row(head), _row(["---"] * len(head))]
    for number, what in units.items():
        cells = [_cell(of_side(rounds, side, number)) for side in sides]
        cells += [_cell(_ratios(rounds, number, other)) for other in others]
        if any(cells):
            lines.append(_row([what, *cells]))
    found = [(goal, found_for(goal, rounds)) for goal in goals]
    held = [f"- {goal}: {_text(value)}, {_verdict(goal, value)}" for goal, value in found if value is not None]
    warned = [_BESIDE] if result["machine"]["loadBefore"] > QUIET else []
    parts = [f"# {result['title']}", *warned, _about(result), "\n".join(lines), *(["\n".join(held)] if held else [])]
    return "\n\n".join(parts) + "\n"


def write(result: Mapping[str, Any], units: Mapping[str, str], goals: Sequence[Goal], directory: Path) -> None:
    """Numbers, table and plot, named after the scenario. The plot needs matplotlib, and is left out without it."""
    directory.mkdir(parents=True, exist_ok=True)
    name = result["scenario"]
    (directory / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (directory / f"{name}.md").write_text(table(result, units, goals))
    try:
        plot(result, units, directory / f"{name}.png")
    except ImportError:
        print("no plot: matplotlib is not installed (pip install 'dtjob[benchmarks]')")
    (directory / "README.md").write_text(index(directory))


def index(directory: Path) -> str:
    """Markdown: what was run when, of all results in a directory, which goals hold, and all plots."""
    head = ["", "when (UTC)", "command", "rounds", "minutes", "load before", "commit", "goals that hold"]
    lines, plots = [_row(head), _row(["---"] * len(head))], ["", "## Plots"]
    for file in sorted(directory.glob("*.json")):
        result = json.loads(file.read_text())
        if "rounds" not in result:  # what the picture of a recovery is drawn from
            continue
        files = f"[{file.stem}]({file.stem}.md), [plot]({file.stem}.png)"
        counted = [str(len(result["rounds"])), f"{result['tookSeconds'] / 60:.0f}"]
        counted += [str(result["machine"]["loadBefore"]), result["versions"]["commit"]]
        plots += ["", f"![{result['title']}]({file.stem}.png)"]
        held = list(result["goals"].values())
        lines.append(_row([files, result["when"], f"`{result['command']}`", *counted, f"{sum(held)} of {len(held)}"]))
    return "\n".join([_INDEX_HEAD, *lines, *plots, ""])


def verdicts(rounds: Sequence[Mapping[str, Any]], goals: Sequence[Goal]) -> dict[str, bool]:
    """Whether what was to hold does, in words; without what was not measured."""
    found = {goal: found_for(goal, rounds) for goal in goals}
    return {str(goal): goal.holds(value.median) for goal, value in found.items() if value is not None}


def plot(result: Mapping[str, Any], units: Mapping[str, str], path: Path) -> None:
    """A bar for each side, one field for each number; a line from the least to the most of the rounds. Raises
    ImportError without matplotlib."""
    from matplotlib.figure import Figure

    sides, rounds = _sides(result), result["rounds"]
    numbers = [number for number in units if any(of_side(rounds, side, number) for side in sides)]
    columns = min(3, len(numbers))
    rows = -(-len(numbers) // columns)
    figure = Figure(figsize=(4.2 * columns, 2.6 * rows), layout="constrained")
    figure.suptitle(result["title"])
    machine, commit = result["machine"], result["versions"]["commit"]
    load = f"load before {machine['loadBefore']}"
    figure.supxlabel(f"{result['when']} UTC, {machine['cores']} cores, {load}, commit {commit}", fontsize=8)
    fields = figure.subplots(rows, columns, squeeze=False).flat
    for field, number in zip(fields, numbers, strict=False):
        spreads = {side: spread(values) for side in sides if (values := of_side(rounds, side, number))}
        middles = [one.median for one in spreads.values()]
        whiskers = [
            [one.median - one.least for one in spreads.values()],
            [one.most - one.median for one in spreads.values()],
        ]
        field.barh(list(spreads), middles, xerr=whiskers, color=[f"C{sides.index(side)}" for side in spreads])
        field.set_title(units[number], fontsize=9)
        field.invert_yaxis()
    for field in list(fields)[len(numbers) :]:
        field.set_visible(False)
    figure.savefig(path, dpi=110)


def _sides(result: Mapping[str, Any]) -> list[str]:
    """In one order for all rounds, ours first."""
    found = {side for one in result["rounds"] for side in one}
    return sorted(found, key=lambda side: (side != OURS, side == "bare", side))


def _ratios(rounds: Sequence[Mapping[str, Any]], number: str, other: str) -> list[float]:
    both = [one for one in rounds if number in one.get(OURS, {}) and number in one.get(other, {})]
    return ratios(of_side(both, OURS, number), of_side(both, other, number))


def _about(result: Mapping[str, Any]) -> str:
    machine, versions = result["machine"], ", ".join(f"{name} {of}" for name, of in result["versions"].items())
    on = f"{machine['cores']} cores ({machine['cpu']}, Linux {machine['kernel']}), {machine['memoryGiB']} GiB"
    times = len(result["rounds"])
    return (
        f"`{result['command']}`\n\n{times} {'round' if times == 1 else 'rounds'} on {result['when']} UTC in "
        f"{result['tookSeconds'] / 60:.1f} minutes, {on}, load {machine['loadBefore']} before and "
        f"{machine['loadAtTheEnd']} at the end; {versions}. Medians, with the least and the most of the rounds."
    )


def _verdict(goal: Goal, found: Spread) -> str:
    return "holds" if goal.holds(found.median) else "**does not hold**"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(values: Sequence[float]) -> str:
    return _text(spread(values)) if values else ""


def _text(found: Spread) -> str:
    if found.least == found.most:
        return _figure(found.median)
    return f"{_figure(found.median)} ({_figure(found.least)} – {_figure(found.most)})"


def _figure(value: float) -> str:
    """Three digits, and no power of ten."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
