# SPDX-License-Identifier: Apache-2.0
"""`dtjob top`: a job of a cluster as it trains: a live view on a terminal, else a line for each change."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from dtjob.api.names import KIND
from dtjob.api.phase import ENDED, Phase
from dtjob.cli.watching.listing import aligned
from dtjob.cli.watching.pods import attempt_of, in_order, newest, selector, state_of, task_of
from dtjob.cli.watching.words import phase_of, since, status_lines, step_text, summary
from dtjob.client.changes import changes
from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError

Object = Mapping[str, Any]
HEAD = ("TASK", "STATE", "ATTEMPT", "NODE", "AGE")
MOST_TASKS = 24
REDRAW_PER_SECOND = 2


def top(cluster: Cluster, name: str, out: TextIO | None = None) -> int:
    """Show the job until it has ended. Returns 0 if it has succeeded, and 1 if it has failed or was deleted."""
    out = out or sys.stdout
    return _live(cluster, name, out) if out.isatty() else _plain(cluster, name, out)


def view(job: Object, pods: Sequence[Object], now: datetime | None = None) -> Iterator[str]:
    """The lines of the live view: the status, and a line for each task."""
    now = now or datetime.now(UTC)
    yield from status_lines(job, now)
    yield ""
    tasks = newest(in_order(pods))
    rows = [
        (
            task_of(pod),
            state_of(pod),
            str(attempt_of(pod)),
            str((pod.get("spec") or {}).get("nodeName") or ""),
            since(pod["metadata"].get("creationTimestamp"), now),
        )
        for pod in tasks[:MOST_TASKS]
    ]
    yield from aligned([HEAD, *rows])
    if len(tasks) > MOST_TASKS:
        yield f"… {len(tasks) - MOST_TASKS} more"


def line_of(job: Object) -> str:
    """The job in one line, without what changes with each step."""
    step = step_text(job.get("status") or {})
    metrics = ", ".join(
        f"{one['name']} {one['value']}"
        for one in ((job.get("status") or {}).get("progress") or {}).get("metrics") or ()
    )
    return ", ".join(filter(None, [summary(job), f"step {step}" if step else "", metrics]))


def _plain(cluster: Cluster, name: str, out: TextIO) -> int:
    said = ""
    for job in changes(cluster, KIND, name):
        line = "it was deleted" if job is None else line_of(job)
        if line != said:
            said = line
            out.write(f"{name}: {line}\n")
            out.flush()
        if job is None or phase_of(job) in ENDED:
            return _code(job)
    return 1


def _live(cluster: Cluster, name: str, out: TextIO) -> int:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    shown = _Shown()

    def render() -> Text:
        return Text("\n".join(view(shown.job, shown.pods)), overflow="ellipsis", no_wrap=True)

    for job in changes(cluster, KIND, name):
        if job is None:
            return _code(None)
        shown.job = job
        break
    shown.follow_pods(cluster, name)
    with Live(console=Console(file=out), refresh_per_second=REDRAW_PER_SECOND, get_renderable=render):
        for job in changes(cluster, KIND, name):
            if job is None:
                return _code(None)
            shown.job = job
            if phase_of(job) in ENDED:
                return _code(job)
    return 1


class _Shown:
    """What the live view shows. Its pods are read in a thread, at each change of one."""

    def __init__(self) -> None:
        self.job: Object = {}
        self.pods: list[Any] = []

    def follow_pods(self, cluster: Cluster, name: str) -> None:
        """Begin, in the background."""
        threading.Thread(target=self._follow, args=(cluster, name), daemon=True).start()

    def _follow(self, cluster: Cluster, name: str) -> None:
        while True:
            with contextlib.suppress(ClientError):
                page = cluster.connection.call("GET", cluster.path("Pod"), query={"labelSelector": selector(name)})
                there = {pod["metadata"]["uid"]: pod for pod in page.get("items") or []}
                self.pods = list(there.values())
                for change, pod in cluster.watch("Pod", str(page["metadata"]["resourceVersion"]), selector(name)):
                    there.pop(pod["metadata"]["uid"], None)
                    if change != "DELETED":
                        there[pod["metadata"]["uid"]] = pod
                    self.pods = list(there.values())


def _code(job: Object | None) -> int:
    return 0 if job is not None and phase_of(job) == Phase.SUCCEEDED else 1
