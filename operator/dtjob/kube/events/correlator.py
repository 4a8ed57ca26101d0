# SPDX-License-Identifier: Apache-2.0
"""Correlator: which Events repeat earlier ones. It has the rules of client-go's EventCorrelator.

The same event again within ten minutes is the one that is there, counted once more. Of one reason, at most ten
different events are recorded within ten minutes; what comes then is counted as one.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from dtjob.plan.actions import Event

WINDOW = timedelta(minutes=10)
MOST_ALIKE = 10
REMEMBERED = 4096
"""Reasons of jobs that are remembered; the API server forgets events as well, after an hour."""
COMBINED = "(combined from similar events): "


@dataclass(frozen=True)
class Recorded:
    """An event as it is recorded: under which suffix of its name, how often it has happened, and since when."""

    event: Event
    suffix: str
    count: int
    first: datetime


@dataclass
class _Recorded:
    suffix: str
    count: int
    first: datetime
    last: datetime


class Correlator:
    """Remembers what was recorded lately. One for each process: another begins anew."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, str], dict[str, _Recorded]] = OrderedDict()

    def correlate(self, job_uid: str, event: Event, now: datetime) -> Recorded:
        """How to record this event of a job: as a new one where its count is 1, else in place of the earlier one."""
        key = (job_uid, event.type, event.reason)
        alike = {text: one for text, one in self._known.get(key, {}).items() if now - one.last <= WINDOW}
        self._known[key] = alike
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        message = event.message
        if message not in alike and len(alike) >= MOST_ALIKE:
            message = COMBINED  # the newest of them is what it will say
        recorded = alike.setdefault(message, _Recorded(secrets.token_hex(8), 0, now, now))
        recorded.count, recorded.last = recorded.count + 1, now
        text = COMBINED + event.message if message == COMBINED else message
        return Recorded(Event(event.type, event.reason, text), recorded.suffix, recorded.count, recorded.first)
