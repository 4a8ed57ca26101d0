# SPDX-License-Identifier: Apache-2.0
"""`dtjob events`: a table."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dtjob.cli.watching.listing import aligned
from dtjob.client.verbs.events import time_of
from dtjob.client.verbs.words import since

Object = Mapping[str, Any]
HEAD = ("AGE", "TYPE", "REASON", "OBJECT", "MESSAGE")


def lines(events: Sequence[Object], now: datetime | None = None) -> Iterator[str]:
    """The events as a table."""
    now = now or datetime.now(UTC)
    yield from aligned([HEAD, *(_row(event, now) for event in events)])


def _row(event: Object, now: datetime) -> tuple[str, ...]:
    about = event.get("involvedObject") or {}
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    age = since(time_of(event), now) + (f" (x{count})" if count > 1 else "")
    message = " ".join(str(event.get("message") or "").split())
    kind = "pod" if about.get("kind") == "Pod" else "job"
    return age, str(event.get("type") or ""), str(event.get("reason") or ""), f"{kind}/{about.get('name')}", message
