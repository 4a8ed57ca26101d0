# SPDX-License-Identifier: Apache-2.0
"""Set back: what a status says of times that were later than now, after the operator's clock was set back.

An incident that has not begun yet shows that. Without a correction, its backoff would last for as long as the clock was
wrong. Another operator, whose clock is behind, finds the same.
"""

from datetime import datetime, timedelta
from typing import Any, TypeVar

from dtjob.api.status.block import StatusBlock, whole
from dtjob.api.status.status import Status

Block = TypeVar("Block", bound=StatusBlock)


def after_set_back(status: Status, now: datetime) -> Status:
    """The status with its incident begun now, where it says that the incident begins later.

    All times of its incident, and those of its period of activity and of its restored checkpoint that are later than
    now, become earlier by the same duration: their order stays.
    """
    incident = status.internal.incident
    if incident is None or incident.started_at <= now:
        return status
    ahead = incident.started_at - whole(now)
    errors = incident.errors and _earlier(incident.errors, ahead, now)
    moved = _earlier(incident, ahead, now).but(errors=errors)
    active = status.active and _earlier(status.active, ahead, now)
    restored = status.restored and _earlier(status.restored, ahead, now)
    return status.but(active=active, restored=restored).remembering(incident=moved)


def _earlier(block: Block, ahead: timedelta, now: datetime) -> Block:
    times: dict[str, Any] = {name: getattr(block, name) for name in type(block).model_fields}
    return block.but(
        **{name: time - ahead for name, time in times.items() if isinstance(time, datetime) and time > now}
    )
