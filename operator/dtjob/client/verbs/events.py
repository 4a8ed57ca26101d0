# SPDX-License-Identifier: Apache-2.0
"""What happened to a job and its pods."""

import re
from collections.abc import Mapping
from typing import Any

from dtjob.api.names import KIND
from dtjob.client.cluster import Cluster

Object = Mapping[str, Any]
_OF_A_POD = re.compile(r"-(chief|worker|ps|evaluator)-\d+-\d+")


def events(cluster: Cluster, name: str) -> list[Object]:
    """The Events about a job and its pods, the newest last. A cluster keeps them for an hour. Raises ClientError."""
    uid = cluster.get(KIND, name)["metadata"]["uid"]

    def is_about(event: Object) -> bool:
        about = event.get("involvedObject") or {}
        if about.get("uid") == uid:
            return True
        other = str(about.get("name", ""))
        return about.get("kind") == "Pod" and other.startswith(name) and bool(_OF_A_POD.fullmatch(other[len(name) :]))

    return sorted(filter(is_about, cluster.list("Event")), key=time_of)


def time_of(event: Object) -> str:
    """When it last happened."""
    series = (event.get("series") or {}).get("lastObservedTime")
    times = (series, event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp"))
    return str(next((time for time in times if time), ""))
