"""Silence: a supervisor that runs and whose status cannot be read. It is unknown then, no stall and no failure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Silence:
    """Since when the supervisor of one pod cannot be read, and how that shows."""

    pod_uid: str
    address: str
    """`host:port` at which it was asked."""
    since: datetime
    reason: str
    """One word for programs, such as `ConnectTimeout`."""
    message: str
    """What happened when it was asked last, in words."""
