# SPDX-License-Identifier: Apache-2.0
"""`dtjob events`: what happened to a job and its pods, the newest last."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dtjob.cli.watching.listing import aligned
from dtjob.cli.watching.words import since

Object = Mapping[str, Any]
HEAD = ("AGE", "TYPE", "REASON", "OBJECT", "MESSAGE")
_OF_A_POD = re.compile(r"-(chief|worker|ps|evaluator)-\d+-\d+")


def of_job(events: Sequence[Object], job: Object) -> list[Object]:
    """The events about this job and its pods, in the order of time."""
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]

    def is_about(event: Object) -> bool:
        about = event.get("involvedObject") or {}
        if about.get("uid") == uid:
            return True
        other = str(about.get("name", ""))
        return about.get("kind") == "Pod" and other.startswith(name) and bool(_OF_A_POD.fullmatch(other[len(name) :]))

    return sorted(filter(is_about, events), key=time_of)


def time_of(event: Object) -> str:
    """When it last happened."""
    series = (event.get("series") or {}).get("lastObservedTime")
    times = (series, event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp"))
    return str(next((time for time in times if time), ""))


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
