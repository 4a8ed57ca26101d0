"""A pod's own events: what its kubelet, or whoever attaches its volumes, has said about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class PodEvent:
    """The newest warning about a pod, as it was read at one moment; the text is empty where there is none."""

    pod_uid: str
    read_at: datetime
    text: str
