# SPDX-License-Identifier: Apache-2.0
"""Draws a dashboard from the answers of Prometheus. It shows what Grafana shows, in its places and colours."""

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.dashboards.panels import Dashboard, Panel
from tools.dashboards.prometheus import Series

Answers = Mapping[str, Sequence[Sequence[Series]]]
"""By the title of the panel and of its row: the series of each of its queries."""
COLOURS = ("#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a")
BACKGROUND, PANEL, TEXT, FAINT = "#111217", "#181b1f", "#ccccdc", "#2f3339"
NAMED = {"green": "#73bf69", "orange": "#ff9830", "red": "#f2495c", "blue": "#5794f2"}
CELL = 0.36
"""Inches of a row of the grid."""
WIDTH = 15.0
"""Inches."""
DPI = 110
LEGENDS = 7
"""Names in a legend."""


def draw(dashboard: Dashboard, answers: Answers, path: Path) -> None:
    """Write the picture as PNG. Needs matplotlib."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture(dashboard, answers).savefig(path, format="png", dpi=DPI, facecolor=BACKGROUND, metadata={"Software": None})


def picture(dashboard: Dashboard, answers: Answers) -> Any:
    """The picture, as a Figure of matplotlib."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = sum(1 + _height(row.panels) for row in dashboard.rows)
    answers = _from_the_first_sample(answers)
    with rc_context({"font.family": "sans-serif", "font.size": 8}):
        figure = Figure(figsize=(WIDTH, (rows + 1) * CELL), facecolor=BACKGROUND)
        top = 1.0
        _words(figure, 0.006, 1 - 0.6 / (rows + 1), dashboard.title, size=13)
        for row in dashboard.rows:
            _words(figure, 0.006, 1 - (top + 0.6) / (rows + 1), row.title, size=10)
            left, top = 0, top + 1
            for panel in row.panels:
                if left + panel.width > 24:
                    left, top = 0, top + panel.height
                bounds = (left / 24, 1 - (top + panel.height) / (rows + 1), panel.width / 24, panel.height / (rows + 1))
                _panel(figure, panel, answers[key(row.title, panel)], bounds)
                left += panel.width
            top += row.panels[-1].height
    return figure


def _from_the_first_sample(answers: Answers) -> Answers:
    """The answers with times in seconds since the first sample of all."""
    begin = min(one.values[0][0] for queries in answers.values() for series in queries for one in series)

    def moved(one: Series) -> Series:
        return Series(one.labels, [(at - begin, value) for at, value in one.values])

    return {name: [[moved(one) for one in series] for series in queries] for name, queries in answers.items()}


def key(row: str, panel: Panel) -> str:
    """The name of a panel among all of its dashboard."""
    return f"{row}: {panel.title}"


def label(legend: str, labels: Mapping[str, str]) -> str:
    """The name of a series, as a legend of Grafana has it."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), legend)


def figures(value: float, unit: str) -> str:
    """A number with its unit."""
    if unit == "percentunit":
        return f"{100 * value:.1f} %"
    if unit == "bytes":
        return f"{value / 2**20:.0f} MiB"
    if unit == "s":
        return _duration(value)
    text = f"{value:,.0f}" if value == round(value) else f"{value:.3g}"
    return f"{text} /s" if unit in ("reqps", "ops") else text


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.3g} s" if seconds < 60 else f"{seconds / 60:.3g} min"


def _height(panels: Sequence[Panel]) -> int:
    """Rows of the grid that the panels of a row take."""
    left, height = 0, panels[0].height
    for panel in panels:
        if left + panel.width > 24:
            left, height = 0, height + panel.height
        left += panel.width
    return height


def _words(figure: Any, left: float, bottom: float, text: str, size: float) -> None:
    figure.text(left, bottom, text, color=TEXT, fontsize=size, va="center")


def _panel(figure: Any, panel: Panel, found: Sequence[Sequence[Series]], bounds: tuple[float, ...]) -> None:
    left, bottom, width, height = bounds
    margin = 0.0025
    frame = figure.add_axes((left + margin, bottom + margin, width - 2 * margin, height - 2 * margin))
    frame.set_facecolor(PANEL)
    frame.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
    frame.spines[:].set_color(FAINT)
    frame.text(0.5 if panel.kind == "stat" else 0.015, 0.985, panel.title, color=TEXT, fontsize=8.5, va="top",
               ha="center" if panel.kind == "stat" else "left")  # fmt: skip
    {"stat": _stat, "table": _table}.get(panel.kind, _over_time)(figure, frame, panel, found, bounds)


def _stat(figure: Any, frame: Any, panel: Panel, found: Sequence[Sequence[Series]], bounds: tuple[float, ...]) -> None:
    value = found[0][0].values[-1][1]
    colour = next((name for at, name in reversed(panel.steps) if value >= at), "blue")
    frame.text(0.5, 0.42, figures(value, panel.unit), color=NAMED[colour], fontsize=20, ha="center", va="center")


def _table(figure: Any, frame: Any, panel: Panel, found: Sequence[Sequence[Series]], bounds: tuple[float, ...]) -> None:
    jobs = sorted(found[0], key=lambda one: (one.labels["job_namespace"], one.labels["job_name"]))
    names = ("Namespace", "Job", "Phase", "Reason", *(query.legend for query in panel.queries[1:]))
    lines = [list(names)]
    for job in jobs:
        line = [job.labels[name] for name in ("job_namespace", "job_name", "phase", "reason")]
        for query, series in zip(panel.queries[1:], found[1:], strict=True):
            values = [one.values[-1][1] for one in series if one.labels["job_name"] == job.labels["job_name"]]
            line.append(figures(values[0], "percentunit" if query.legend == "Goodput" else "short") if values else "")
        lines.append(line)
    for number, line in enumerate(lines):
        for column, text in enumerate(line):
            place = (0.01 + column / len(names), 0.8 - 0.11 * number)
            frame.text(*place, text, color=TEXT if number else NAMED["blue"], fontsize=8.5, va="center")


def _over_time(
    figure: Any, frame: Any, panel: Panel, found: Sequence[Sequence[Series]], bounds: tuple[float, ...]
) -> None:
    left, bottom, width, height = bounds
    states = panel.kind == "state-timeline"
    inner = (
        left + (0.075 if states else 0.035),
        bottom + 0.32 * height,
        width - (0.085 if states else 0.045),
        0.55 * height,
    )
    axes = figure.add_axes(inner, facecolor=PANEL)
    named = [
        (label(query.legend, one.labels), one.values)
        for query, series in zip(panel.queries, found, strict=True)
        for one in sorted(series, key=lambda one: sorted(one.labels.items()))
    ]
    (_states if states else _stacked if panel.stacked else _lines)(axes, named)
    axes.tick_params(colors=TEXT, labelsize=7, length=0)
    axes.grid(color=FAINT, linewidth=0.5)
    axes.spines[:].set_visible(False)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds", color=TEXT, fontsize=7, labelpad=1)
    if not states:
        axes.yaxis.set_major_formatter(lambda value, _: figures(value, panel.unit))
        if panel.from_zero:
            axes.set_ylim(bottom=0)
        if any(name for name, _ in named):
            legend = axes.legend(
                loc="upper left", bbox_to_anchor=(-0.05, -0.24), ncols=3, frameon=False, fontsize=6.5, handlelength=1
            )
            for text in legend.get_texts():
                text.set_color(TEXT)


Named = list[tuple[str, list[tuple[float, float]]]]


def _lines(axes: Any, named: Named) -> None:
    for number, (name, values) in enumerate(named):
        shown = name if number < LEGENDS else None
        axes.plot(
            *zip(*_with_gaps(values), strict=True), color=COLOURS[number % len(COLOURS)], linewidth=1, label=shown
        )


def _stacked(axes: Any, named: Named) -> None:
    times = sorted({at for _, values in named for at, _ in values})
    heights = [[dict(values).get(at, 0.0) for at in times] for _, values in named]
    shown = [name if number < LEGENDS else "_" for number, (name, _) in enumerate(named)]
    colours = [COLOURS[number % len(COLOURS)] for number in range(len(named))]
    axes.stackplot(times, heights, labels=shown, colors=colours, alpha=0.55, linewidth=0)


def _states(axes: Any, named: Named) -> None:
    for number, (_, values) in enumerate(named):
        for (begin, state), (end, _) in itertools.pairwise(values):
            if end - begin < 10:
                axes.barh(number, end - begin, left=begin, height=0.7, color=NAMED["green"] if state else "#4a4f57")
    axes.set_yticks(range(len(named)), [name for name, _ in named])
    axes.invert_yaxis()


def _with_gaps(values: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The values, with a hole where there was no sample for a while."""
    found = values[:1]
    for (before, _), (at, value) in itertools.pairwise(values):
        if at - before > 10:
            found.append((at, float("nan")))
        found.append((at, value))
    return found
