# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes event on a job, as `kubectl describe` shows it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from dtjob import times
from dtjob.api.job import API_VERSION, KIND
from dtjob.kube.events.correlator import Recorded
from dtjob.objects.manifest import Manifest

COMPONENT = "dtjob"
LONGEST_MESSAGE = 1024
"""The API server's limit for an event's message."""
LONGEST_WARNING = 400
"""Characters of a warning that go into a job's status."""


def name_of(job: Manifest, recorded: Recorded) -> str:
    """The event's name, which no other event of the job has."""
    return f"{job['metadata']['name']}.{recorded.suffix}"


def event_object(job: Manifest, recorded: Recorded, now: datetime) -> Manifest:
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
        **repetition(recorded, now),
    }


def repetition(recorded: Recorded, now: datetime) -> dict[str, Any]:
    """What of a recorded event changes when it happens again."""
    return {
        "message": recorded.event.message[:LONGEST_MESSAGE],
        "lastTimestamp": times.rfc3339(now),
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
