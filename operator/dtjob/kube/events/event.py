# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes event on a job, as `kubectl describe` shows it, and which Events repeat earlier ones.

That has the rules of client-go's EventCorrelator. The same event again within ten minutes is the one that is there,
counted once more. Of one reason, at most ten different events are recorded within ten minutes; what comes then is
counted as one.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.job import API_VERSION, KIND
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event

WINDOW = timedelta(minutes=10)
MOST_ALIKE = 10
REMEMBERED = 4096
"""Reasons of jobs that are remembered; the API server forgets events as well, after an hour."""
COMBINED = "(combined from similar events): "


@dataclass
class Recorded:
    """An event as it is recorded: under which suffix of its name, how often it has happened, and when."""

    event: Event
    suffix: str
    count: int
    first: datetime
    last: datetime


class Correlator:
    """Remembers what was recorded lately. One for each process: another begins anew."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, str], dict[str, Recorded]] = OrderedDict()

    def correlate(self, job_uid: str, event: Event, now: datetime) -> Recorded:
        """How to record this event of a job: as a new one where its count is 1, else in place of the earlier one. The
        answer holds until the next event."""
        key = (job_uid, event.type, event.reason)
        alike = {text: one for text, one in self._known.get(key, {}).items() if now - one.last <= WINDOW}
        self._known[key] = alike
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        message = event.message
        if message not in alike and len(alike) >= MOST_ALIKE:
            message, event = COMBINED, replace(event, message=COMBINED + message)  # the newest of them is what it says
        recorded = alike.setdefault(message, Recorded(event, secrets.token_hex(8), 0, now, now))
        recorded.event, recorded.count, recorded.last = event, recorded.count + 1, now
        return recorded


COMPONENT = "dtjob"
LONGEST_MESSAGE = 1024
"""The API server's limit for an event's message."""
LONGEST_WARNING = 400
"""Characters of a warning that go into a job's status."""


def name_of(job: Manifest, recorded: Recorded) -> str:
    """The event's name, which no other event of the job has."""
    return f"{job['metadata']['name']}.{recorded.suffix}"


def event_object(job: Manifest, recorded: Recorded) -> Manifest:
    """The core/v1 Event. `job` is the job as stored."""
    metadata = job["metadata"]
    involved = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name_of(job, recorded), "namespace": metadata["namespace"]},
        "involvedObject": {"apiVersion": API_VERSION, "kind": KIND, **involved},
        "type": recorded.event.type,
        "reason": recorded.event.reason,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": times.rfc3339(recorded.first),
        **repetition(recorded),
    }


def repetition(recorded: Recorded) -> dict[str, Any]:
    """What of a recorded event changes when it happens again."""
    return {
        "message": recorded.event.message[:LONGEST_MESSAGE],
        "lastTimestamp": times.rfc3339(recorded.last),
        "count": recorded.count,
    }


def newest_warning(events: Iterable[Manifest]) -> str:
    """Reason and message of the newest of these events of a pod, in one line; empty if there is none. Not the
    scheduler's: a pod that is asked about has a node."""
    others = [one for one in events if one.get("reason") != "FailedScheduling"]
    if not others:
        return ""
    newest = max(others, key=_happened)
    return " ".join(f"{newest.get('reason', '')}: {newest.get('message', '')}".split())[:LONGEST_WARNING]


def _happened(event: Manifest) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")
