# SPDX-License-Identifier: Apache-2.0
"""What the controller remembers of one job beside its objects: one record, dropped when the job has gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dtjob.controller.call_summary import CallSummary
from dtjob.controller.pace.holds import Holds
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event
from dtjob.plan.seen.children import PodEvent, Silence


@dataclass(frozen=True)
class Unanswered:
    """A status that was sent, and nobody answered: it may be written or not."""

    job: Manifest
    status: dict[str, Any]
    events: Sequence[Event]


@dataclass
class Memory:
    """All of it can be found anew: an operator that starts has none."""

    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What supervisors said in their `/status`, by task."""
    silences: dict[str, Silence] = field(default_factory=dict)
    """The supervisors that do not answer, by task."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why calls fail, by what they are about."""
    pod_event: PodEvent | None = None
    """What was read of a pod's events."""
    knows_config_map: bool = False
    """Whether the job's ConfigMap was looked for, which an earlier operator may have made."""
    made_for: str = ""
    """The uid of the job whose objects are made."""
    holds: Holds = field(default_factory=Holds)
    """What was refused, and when it may be tried again."""
    summary: CallSummary = field(default_factory=CallSummary)
    """What the plan that is carried out has come to."""
    unanswered: Unanswered | None = None
    """The last status, if it is not known whether it is written."""
    progress_refused: str = ""
    """Why the API server refuses what was reported, as an event has said."""
