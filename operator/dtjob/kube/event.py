"""A Kubernetes event on a job, as `kubectl describe` shows it."""

from __future__ import annotations

import time
from datetime import datetime

from dtjob import times
from dtjob.api.job import API_VERSION, KIND
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event

COMPONENT = "dtjob"
LONGEST_MESSAGE = 1024
"""The API server's limit for an event's message."""


def event_object(job: Manifest, event: Event, now: datetime) -> Manifest:
    """The core/v1 Event. `job` is the job as stored; the name is one that no other event of it has."""
    metadata, moment = job["metadata"], times.rfc3339(now)
    involved = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{time.time_ns():x}", "namespace": metadata["namespace"]},
        "involvedObject": {"apiVersion": API_VERSION, "kind": KIND, **involved},
        "type": event.type,
        "reason": event.reason,
        "message": event.message[:LONGEST_MESSAGE],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
