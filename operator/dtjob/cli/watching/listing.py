# SPDX-License-Identifier: Apache-2.0
"""`dtjob list`: the jobs of a namespace, or of all. Pure but for the call."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dtjob.cli.watching.words import phase_of, since, step_text
from dtjob.times import duration

Object = Mapping[str, Any]
COLUMNS = ("NAME", "PHASE", "READY", "STEP", "ETA", "RESTARTS", "REASON", "AGE")


def table(jobs: Sequence[Object], *, with_namespace: bool, now: datetime | None = None) -> Iterator[str]:
    """The head and a line for each job, in columns."""
    now = now or datetime.now(UTC)
    head = (*(("NAMESPACE",) if with_namespace else ()), *COLUMNS)
    rows = [(*((job["metadata"]["namespace"],) if with_namespace else ()), *_row(job, now)) for job in jobs]
    yield from aligned([head, *rows])


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows in columns as wide as their longest cell."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(job: Object, now: datetime) -> tuple[str, ...]:
    status = job.get("status") or {}
    left = (status.get("progress") or {}).get("estimatedRemainingSeconds")
    return (
        str(job["metadata"]["name"]),
        phase_of(job),
        str(status.get("ready") or ""),
        step_text(status),
        duration(left) if left is not None and status.get("phase") == "Running" else "",
        str((status.get("restarts") or {}).get("total") or 0),
        str(status.get("reason") or ""),
        since(job["metadata"].get("creationTimestamp"), now),
    )
