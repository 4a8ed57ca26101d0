# SPDX-License-Identifier: Apache-2.0
"""Tables of jobs, for `dtjob list`, and of Events, for `dtjob events`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dtjob.api.names import GROUP, KIND
from dtjob.client.changes import batches
from dtjob.client.cluster import Cluster
from dtjob.client.verbs.pods import time_of
from dtjob.client.verbs.words import harmless, phase_of, since, step_text
from dtjob.times import duration

Object = Mapping[str, Any]
COLUMNS = ("NAME", "PHASE", "READY", "STEP", "ETA", "RESTARTS", "REASON", "AGE")
MORE_COLUMNS = ("STRATEGY", "WORKERS", "CHECKPOINT", "GOODPUT")
"""The columns that `-o wide` adds."""


EVENT_COLUMNS = ("AGE", "TYPE", "REASON", "OBJECT", "MESSAGE")


@dataclass(frozen=True)
class Form:
    """Which columns a table has."""

    with_namespace: bool = False
    wide: bool = False

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the columns."""
        return (*(("NAMESPACE",) if self.with_namespace else ()), *COLUMNS, *(MORE_COLUMNS if self.wide else ()))

    def row(self, job: Object, now: datetime) -> tuple[str, ...]:
        """The cells of one job."""
        namespace = (str(job["metadata"]["namespace"]),) if self.with_namespace else ()
        return (*namespace, *_cells(job, now), *(_more_cells(job) if self.wide else ()))


def table(jobs: Sequence[Object], form: Form, now: datetime | None = None) -> Iterator[str]:
    """The head and a line for each job, in columns."""
    now = now or datetime.now(UTC)
    yield from aligned([form.head, *(form.row(job, now) for job in jobs)])


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows in columns as wide as their longest cell."""
    shown = [[harmless(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*shown, strict=True)]
    for row in shown:
        yield _line(row, widths)


def watched(cluster: Cluster, form: Form, labels: str = "", *, everywhere: bool = False) -> Iterator[str]:
    """The table, and then a line for each change of a job, without an end. Raises ClientError."""
    widths: list[int] = []
    for batch in batches(cluster, KIND, labels, everywhere=everywhere):
        rows = [tuple(map(harmless, form.row(job, datetime.now(UTC)))) for _, job in batch]
        rows = rows if widths else [form.head, *rows]
        widths = widths or [0] * len(form.head)
        for row in rows:
            widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
        yield from (_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def name_of(job: Object) -> str:
    """The job as kubectl names an object, so that its commands take the line."""
    return f"{KIND.lower()}.{GROUP}/{job['metadata']['name']}"


def _cells(job: Object, now: datetime) -> Iterator[str]:
    status = job.get("status") or {}
    left = (status.get("progress") or {}).get("estimatedRemainingSeconds")
    yield str(job["metadata"]["name"])
    yield phase_of(job)
    yield str(status.get("ready") or "")
    yield step_text(status)
    yield duration(left) if left is not None and status.get("phase") == "Running" else ""
    yield str((status.get("restarts") or {}).get("total") or 0)
    yield str(status.get("reason") or "")
    yield since(job["metadata"].get("creationTimestamp"), now)


def _more_cells(job: Object) -> Iterator[str]:
    status = job.get("status") or {}
    goodput = (status.get("goodput") or {}).get("percentage")
    yield str(job["spec"].get("strategy") or "")
    yield str((status.get("workers") or {}).get("replicas") or "")
    yield str((status.get("checkpoint") or {}).get("step", ""))
    yield "" if goodput is None else f"{goodput}%"


def event_table(events: Sequence[Object], now: datetime | None = None) -> Iterator[str]:
    """The head and a line for each Event, in columns."""
    now = now or datetime.now(UTC)
    yield from aligned([EVENT_COLUMNS, *(_event_cells(event, now) for event in events)])


def _event_cells(event: Object, now: datetime) -> tuple[str, ...]:
    about = event.get("involvedObject") or {}
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    age = since(time_of(event), now) + (f" (x{count})" if count > 1 else "")
    message = " ".join(str(event.get("message") or "").split())
    kind = "pod" if about.get("kind") == "Pod" else "job"
    return age, str(event.get("type") or ""), str(event.get("reason") or ""), f"{kind}/{about.get('name')}", message
