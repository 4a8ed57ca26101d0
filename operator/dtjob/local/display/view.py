# SPDX-License-Identifier: Apache-2.0
"""The live view, and the lines above it, as rich renderables. Pure: from a snapshot and from what was printed."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dtjob.api.phase import Phase
from dtjob.local.display.program_output import OfTask
from dtjob.local.display.snapshot import Snapshot, TaskLine, metrics_text, task_lines
from dtjob.local.display.story import EVALUATOR, IMPORTING, OWN_LOOP, progress_text
from dtjob.local.terminal_line import task_head
from dtjob.times import duration

MANY_TASKS = 24
"""No more tasks than this have a line of their own, and fewer where the terminal has no room for them."""
FEW_TASKS = 3
"""So many have one in any terminal."""

COLOURS = {
    "training": "green",
    "serving": "green",
    "evaluating": "green",
    "finished": "cyan",
    "failed": "bold red",
    "ending": "yellow",
    "stopped": "yellow",
    "waiting": "yellow",
    "starting": "yellow",
    "importing": "yellow",
    "saving": "blue",
    "pending": "dim",
}


HEADS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_yellow")
"""Colours of the tasks' names before their lines."""

WIDE = 100
"""Columns of a terminal that has room for the ids of supervisors."""
LONGEST_BAR, SHORTEST_BAR = 40, 8


def live_view(snapshot: Snapshot, unfinished: str = "", stopping: bool = False) -> RenderableType:
    """Header, a line for each task, the progress bar, the evaluator's word.

    `unfinished`: a line that the program has not ended, with its colours. It comes first.
    """
    parts: list[RenderableType] = [_Bar(snapshot)]
    evaluation = snapshot.evaluation
    if evaluation:
        text = f"{EVALUATOR} {metrics_text(evaluation.get('metrics') or {})} at step {evaluation.get('step')}"
        parts.append(_one_line(Text(text, style="cyan")))
    heads = [_one_line(Text.from_ansi(unfinished))] if unfinished else []
    return _Fitted(snapshot, [*heads, Text(), _header(snapshot, stopping)], parts)


def above(at: float, line: str) -> Text:
    """A line of dtjob's own above the view. `at`: seconds since the run began."""
    return Text.assemble((f"[{at:.1f} s] ", "dim"), (line, "bold cyan"))


def program_line(printed: OfTask, by_task: bool, at: float) -> Text:
    """A line of the program above the view. `by_task`: say which task it is of."""
    if printed.line.ours:
        return above(at, (task_head(printed.task) if by_task else "") + printed.line.text)
    text = printed.line.text
    line = Text.from_ansi(text) if "\x1b" in text else Text(text)  # which takes a tenth of the time
    if by_task:
        colour = HEADS[sum(map(ord, printed.task)) % len(HEADS)]
        line = Text.assemble((task_head(printed.task), colour), line)
    return line


def _one_line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


@dataclass(frozen=True)
class _Fitted:
    """The view in as many lines as the terminal has: rich would cut its end off, and that says most."""

    snapshot: Snapshot
    above: Sequence[Text]
    below: Sequence[RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rest = Group(*self.above, *self.below)
        taken = len(console.render_lines(rest, options.update(height=None), pad=False)) + 1  # the table's own header
        yield from self.above
        most = min(MANY_TASKS, max(FEW_TASKS, options.max_height - taken))
        yield _tasks(self.snapshot, most, wide=options.max_width >= WIDE)
        yield from self.below


def _header(snapshot: Snapshot, stopping: bool) -> Text:
    strategy = snapshot.job.spec.strategy.value
    state = snapshot.phase
    if state == Phase.PENDING:
        state = "Starting" if snapshot.reports else IMPORTING
    if stopping:
        state = "Stopping: saving a checkpoint (Ctrl-C again kills)" if snapshot.pids else "Stopped"
    colour = "yellow" if stopping or snapshot.phase in (Phase.PENDING, Phase.RESTARTING) else "green"
    header = Text.assemble((snapshot.job.metadata.name, "bold"), f"  {strategy}  ", (state, colour))
    header.append(f"  {duration(snapshot.elapsed)}", style="dim")
    return _one_line(header)


def _tasks(snapshot: Snapshot, most: int, *, wide: bool) -> Table:
    """The table of the tasks. `wide`: with the ids of supervisors."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("TASK", "STATE"):
        table.add_column(name, no_wrap=True)
    for name in (*(("SUPERVISOR",) if wide else ()), "TRAINING", "STEP", "LOSS", "STEPS/S", "RESTARTS"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, overflow="ellipsis")
    lines = task_lines(snapshot)
    shown = lines if len(lines) <= most else lines[: most - 1]
    for line in shown:
        table.add_row(*_cells(line, wide=wide))
    if len(lines) > len(shown):
        table.add_row(Text(f"… {len(lines) - len(shown)} more", style="dim"))
    return table


def _cells(line: TaskLine, *, wide: bool) -> list[RenderableType]:
    def number(value: float | None, form: str = "g") -> str:
        return "" if value is None else format(value, form)

    return [
        line.task,
        Text(line.state, style=COLOURS.get(line.state, "")),
        *([number(line.supervisor_pid, "d")] if wide else []),
        number(line.training_pid, "d"),
        number(line.step, "d"),
        number(line.loss, ".4f" if abs(line.loss or 0) < 1000 else ".4g"),
        number(line.steps_per_second, ".3g"),
        number(line.restarts or None, "d"),
        Text(line.message, style="dim", overflow="ellipsis", no_wrap=True),
    ]


@dataclass(frozen=True)
class _Bar:
    """The progress bar with the step in words, in one line: the bar gets the columns that the words leave."""

    snapshot: Snapshot

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        chief = self.snapshot.chief
        total = chief.get("totalSteps")
        text = progress_text(self.snapshot, options.max_width) or (
            OWN_LOOP if chief.get("trainsItself") else "no step yet"
        )
        columns = min(LONGEST_BAR, options.max_width - len(text) - 2)
        if not total or columns < SHORTEST_BAR:
            yield _one_line(Text(text))
            return
        grid = Table.grid(padding=(0, 2, 0, 0))
        bar = ProgressBar(total=total, completed=chief.get("step") or 0, width=columns)
        grid.add_row(bar, Text(text, no_wrap=True))
        yield grid
