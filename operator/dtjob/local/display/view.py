# SPDX-License-Identifier: Apache-2.0
"""The live view: a run as a rich renderable. Pure: from a snapshot and the latest lines of the story."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dtjob.api.phase import Phase
from dtjob.local.display.snapshot import Snapshot, TaskLine, task_lines
from dtjob.local.display.story import EVALUATOR, metrics_text, progress_text
from dtjob.times import duration

LATEST = 6
"""Lines of the story under the table."""

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
    "saving": "blue",
    "pending": "dim",
}


def live_view(snapshot: Snapshot, story: Sequence[str], stopping: bool = False) -> RenderableType:
    """Header, a line for each task, the progress bar, the evaluator's word, the latest events."""
    parts: list[RenderableType] = [_bar(snapshot)]
    evaluation = snapshot.evaluation
    if evaluation:
        text = f"{EVALUATOR} {metrics_text(evaluation.get('metrics') or {})} at step {evaluation.get('step')}"
        parts.append(Text(text, style="cyan"))
    events = [line for line in story if not line.startswith(EVALUATOR)]
    parts += [Text(f"· {line}", style="dim", overflow="fold") for line in events[-LATEST:]]
    return _Fitted(snapshot, _header(snapshot, stopping), parts)


@dataclass(frozen=True)
class _Fitted:
    """The view in as many lines as the terminal has: rich would cut its end off, and that says most."""

    snapshot: Snapshot
    header: Text
    below: Sequence[RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rest = Group(self.header, *self.below)
        taken = len(console.render_lines(rest, options.update(height=None), pad=False)) + 1  # the table's own header
        yield self.header
        yield _tasks(self.snapshot, min(MANY_TASKS, max(FEW_TASKS, options.max_height - taken)))
        yield from self.below


def _header(snapshot: Snapshot, stopping: bool) -> Text:
    strategy = snapshot.job.spec.strategy.value
    state = snapshot.phase
    if stopping:
        state = "Stopping: saving a checkpoint (Ctrl-C again kills)" if snapshot.pids else "Stopped"
    colour = "yellow" if stopping or snapshot.phase in (Phase.PENDING, Phase.RESTARTING) else "green"
    header = Text.assemble((snapshot.job.metadata.name, "bold"), f"  {strategy}  ", (state, colour))
    header.append(f"  {duration(snapshot.elapsed)}", style="dim")
    return header


def _tasks(snapshot: Snapshot, most: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("TASK", "STATE"):
        table.add_column(name)
    for name in ("SUPERVISOR", "TRAINING", "STEP", "LOSS", "STEPS/S", "RESTARTS"):
        table.add_column(name, justify="right")
    table.add_column("")
    lines = task_lines(snapshot)
    shown = lines if len(lines) <= most else lines[: most - 1]
    for line in shown:
        table.add_row(*_cells(line))
    if len(lines) > len(shown):
        table.add_row(Text(f"… {len(lines) - len(shown)} more", style="dim"))
    return table


def _cells(line: TaskLine) -> list[RenderableType]:
    def number(value: float | None, form: str = "g") -> str:
        return "" if value is None else format(value, form)

    return [
        line.task,
        Text(line.state, style=COLOURS.get(line.state, "")),
        number(line.supervisor_pid, "d"),
        number(line.training_pid, "d"),
        number(line.step, "d"),
        number(line.loss, ".4f"),
        number(line.steps_per_second, ".3g"),
        number(line.restarts or None, "d"),
        Text(line.message, style="dim", overflow="ellipsis", no_wrap=True),
    ]


def _bar(snapshot: Snapshot) -> RenderableType:
    chief = snapshot.chief
    total = chief.get("totalSteps")
    text = Text(progress_text(snapshot) or "no step yet")
    if not total:
        return text
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_row(ProgressBar(total=total, completed=chief.get("step") or 0, width=40), text)
    return grid
