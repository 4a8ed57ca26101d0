# SPDX-License-Identifier: Apache-2.0
"""`dtjob top`: a job of a cluster as it trains: a live view on a terminal, else a line for each change."""

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from dtjob.api.names import KIND
from dtjob.api.phase import ENDED, Phase
from dtjob.cli.watching.listing import aligned
from dtjob.cli.watching.printer import can_draw
from dtjob.client.changes import changes
from dtjob.client.cluster import Cluster
from dtjob.client.errors import TEMPORARY, NotFound
from dtjob.client.patience import Patience
from dtjob.client.verbs.pods import in_order, newest, selector, task_of
from dtjob.client.verbs.reports import CELLS, Reports, cells, read_reports, shown_tasks
from dtjob.client.verbs.words import harmless, is_stuck, metrics_text, phase_of, status_lines, step_text, summary

Object = Mapping[str, Any]
LOOK_SECONDS = 2.0
"""Between two looks at the job, its pods and their reports."""
ANSWER_SECONDS = 0.5
"""For which a look waits for the reports."""


def top(cluster: Cluster, name: str, out: TextIO | None = None) -> int:
    """Show the job until it has ended. Returns 0 if it has succeeded, and 1 if it has failed, was deleted, or waits for
    its user."""
    out = out or sys.stdout
    return _live(cluster, name, out) if can_draw(out) else _plain(cluster, name, out)


def view(
    job: Object, pods: Sequence[Object], reports: Mapping[str, Object], why: str = "", now: datetime | None = None
) -> Iterator[str]:
    """The lines of the live view: the status, and a line for each task.

    `reports`: of tasks, by their names. `why`: the reason why some are missing.
    """
    now = now or datetime.now(UTC)
    yield from status_lines(job, now)
    yield ""
    tasks = shown_tasks(pods)
    yield from aligned([CELLS, *(cells(pod, reports.get(task_of(pod), {}), now) for pod in tasks)])
    if (more := len(newest(in_order(pods))) - len(tasks)) > 0:
        yield f"… {more} more"
    if why:
        yield f"a task could not be asked for its step: {why}"


def line_of(job: Object) -> str:
    """The job in one line, without what changes with each step."""
    status = job.get("status") or {}
    step = f"step {found}" if (found := step_text(status)) else ""
    return ", ".join(filter(None, [summary(job), step, harmless(metrics_text(status))]))


def _plain(cluster: Cluster, name: str, out: TextIO) -> int:
    said = ""
    for job in changes(cluster, KIND, name):
        line = "it was deleted" if job is None else line_of(job)
        if line != said:
            said = line
            out.write(f"{name}: {line}\n")
            out.flush()
        if job is None or phase_of(job) in ENDED or is_stuck(job):
            return _code(job)
    return 1


def _live(cluster: Cluster, name: str, out: TextIO) -> int:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    job, trying, asked = cluster.get(KIND, name), Patience(cluster.connection.outage), _Asked(cluster)
    with Live(console=Console(file=out), auto_refresh=False) as live:
        while True:
            try:
                pods = cluster.list("Pod", selector(name))
                text = "\n".join(view(job, pods, *asked.of(job, shown_tasks(pods))))
                live.update(Text(text, overflow="ellipsis", no_wrap=True), refresh=True)
                if phase_of(job) in ENDED or is_stuck(job):
                    return _code(job)
                trying.answered()
                time.sleep(LOOK_SECONDS)
                job = cluster.get(KIND, name)
            except NotFound:
                return _code(None)
            except TEMPORARY as error:
                trying.wait(error)


class _Asked:
    """What the supervisors said last. They are asked beside the view, which one that does not answer would hold."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._said: tuple[Reports, str] = {}, ""
        self._asking: threading.Thread | None = None

    def of(self, job: Object, pods: Sequence[Object]) -> tuple[Reports, str]:
        """The reports of these pods and why one is missing, as `read_reports` gives them."""
        if self._asking is None or not self._asking.is_alive():
            self._asking = threading.Thread(target=self._ask, args=(job, pods), daemon=True, name="reports")
            self._asking.start()
        self._asking.join(ANSWER_SECONDS)
        return self._said

    def _ask(self, job: Object, pods: Sequence[Object]) -> None:
        self._said = read_reports(self._cluster, job, pods)


def _code(job: Object | None) -> int:
    return 0 if job is not None and phase_of(job) == Phase.SUCCEEDED else 1
