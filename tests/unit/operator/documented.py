# SPDX-License-Identifier: Apache-2.0
"""Whether the reference pages name each phase, condition, Event and reason that tests see (`tools/reference/`)."""

from typing import Any

from dtjob.api.phase import Phase
from dtjob.plan.actions import Event, Plan
from tools.reference.conditions import CONDITIONS, REASONS_OF_PHASES
from tools.reference.events import EVENTS

OF_PHASES = {reason for reasons in REASONS_OF_PHASES.values() for reason in reasons}
OF_OTHERS = ("QuotaReserved", "Admitted")
"""Conditions with reasons of Kueue's."""


def check_status(status: dict[str, Any]) -> None:
    """Raises AssertionError where the status has a phase, a condition or a reason that is on no page."""
    reasons = {**REASONS_OF_PHASES[Phase(status["phase"])], **REASONS_OF_PHASES[None]}
    assert status["reason"] in reasons, f"tools/reference/conditions.py lacks {status['phase']}: {status['reason']}"
    for one in status.get("conditions", ()):
        known = OF_PHASES | CONDITIONS[one["type"]].reasons.keys()
        names_an_error = (one["type"], one["status"]) == ("StatusReachable", "False")
        free = names_an_error or one["type"] in OF_OTHERS
        assert free or one["reason"] in known, f"tools/reference/conditions.py lacks {one['type']}: {one['reason']}"


def check_event(event: Event) -> None:
    """Raises AssertionError where no page has the reason of the Event with its type."""
    assert event.type in EVENTS[event.reason].types, f"tools/reference/events.py lacks {event.type} {event.reason}"


def check_plan(plan: Plan) -> None:
    """Both, for what a plan writes and tells."""
    if plan.status and "reason" in plan.status:
        check_status(plan.status)
    for event in plan.events:
        check_event(event)
