# SPDX-License-Identifier: Apache-2.0
"""Deadlines: how long a job may be active, and how long its tasks may take until all of them run.

They are the job's own, and end it whether or not anything happens to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dtjob import times
from dtjob.api.phase import Phase
from dtjob.api.status.status import Status
from dtjob.objects import topology
from dtjob.objects.defaults import MISSING_IMAGE_MESSAGE, lacks_image
from dtjob.plan.diagnosis.pending import waiting_reason
from dtjob.plan.failure.budget import is_due
from dtjob.plan.failure.cause import failure_of
from dtjob.plan.pods.one_chief import why_the_chief_waits
from dtjob.plan.record.conditions import BLOCKED, condition
from dtjob.plan.seen.children import PodState, TaskView, node_of
from dtjob.plan.seen.situation import LOOK_AT_LEAST_EVERY, Situation

DEADLINE_EXCEEDED = "DeadlineExceeded"
"""A Job's reason."""
START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"
NAMED = 3
"""How many tasks, and how many reasons, a message names before it counts the rest."""


@dataclass(frozen=True)
class Overdue:
    """A deadline is over: the job fails with this reason, in one word and in words."""

    reason: str
    message: str


def overdue(situation: Situation) -> Overdue | None:
    """The deadline that is over, None if none is."""
    spec, now = situation.group_job.spec, situation.now
    active_until, start_until = _active_until(situation), _start_until(situation)
    if active_until is not None and now >= active_until:
        waits = waited_for(situation)
        more = f"; at the end {waits}" if waits else ""
        field = f"activeDeadlineSeconds ({spec.active_deadline_seconds})"
        return Overdue(DEADLINE_EXCEEDED, f"the job was active for longer than {field}{more}")
    if start_until is not None and now >= start_until and (waits := waited_for(situation)):
        field = f"startDeadlineSeconds ({spec.start_deadline_seconds})"
        return Overdue(START_DEADLINE_EXCEEDED, f"not all tasks ran within {field}: {waits}")
    return None


def ended_by_deadline(status: Status) -> bool:
    """Whether a deadline has ended the job."""
    return status.phase is Phase.FAILED and status.reason in (DEADLINE_EXCEEDED, START_DEADLINE_EXCEEDED)


def deadline_changes_at(situation: Situation) -> datetime | None:
    """When to look at the job for its deadlines though nothing happens; None if it has none."""
    ends = (_active_until(situation), _start_until(situation))
    ends_to_come = [end for end in ends if end is not None and end > situation.now]
    return min((*ends_to_come, situation.now + LOOK_AT_LEAST_EVERY)) if ends_to_come else None


def note_all_ran(situation: Situation, status: Status) -> Status:
    """The status, with the moment at which all tasks that train first ran together."""
    if status.active is None or status.phase is not Phase.RUNNING:
        return status
    return status.but(active=status.active.all_run(situation.now))


def waited_for(situation: Situation) -> str:
    """What the tasks that train and do not run wait for, in words; empty if all are up."""
    absent = [view for view in situation.training if not view.up]
    if not absent:
        return ""
    reasons = _reasons(situation, absent)
    more = f"; and {len(reasons) - NAMED} more reasons" if len(reasons) > NAMED else ""
    said = "; ".join(reasons[:NAMED])
    count = len(situation.training)
    return f"{len(absent)} of {count} {'task' if count == 1 else 'tasks'} did not run: {said}{more}"


def _active_until(situation: Situation) -> datetime | None:
    seconds, active = situation.group_job.spec.active_deadline_seconds, situation.status.active
    if seconds is None or active is None or active.since is None:
        return None
    return active.since + max(timedelta(seconds=seconds - active.seconds), timedelta(0))


def _start_until(situation: Situation) -> datetime | None:
    seconds, active = situation.group_job.spec.start_deadline_seconds, situation.status.active
    if seconds is None or active is None or active.since is None or active.all_ran_time is not None:
        return None
    return active.since + timedelta(seconds=seconds)


def _reasons(situation: Situation, absent: Iterable[TaskView]) -> list[str]:
    """Each thing that is waited for, with the tasks that wait for it."""
    if lacks_image(situation.group_job, situation.defaults):
        return [MISSING_IMAGE_MESSAGE]
    refused = _refused(situation)
    waiting: dict[str, list[str]] = {}
    for view in absent:
        if view.state is not PodState.MISSING or not refused:
            waiting.setdefault(_why(situation, view), []).append(view.task.id)
    return [*refused, *(f"{_tasks(ids)}: {why}" for why, ids in waiting.items())]


def _refused(situation: Situation) -> list[str]:
    """What could not be made, and why. A restarted operator has not tried yet, and says what the last one wrote."""
    problems: Mapping[str, str] = situation.children.problems
    if problems:
        return [f"{what}: {why}" for what, why in sorted(problems.items())]
    said = condition(situation.written.conditions, BLOCKED)
    return [said.message] if said and said.holds and said.message else []


def _why(situation: Situation, view: TaskView) -> str:
    """Why one task does not run."""
    if failure := failure_of(view, situation.now):
        return failure.reason
    if view.pod is not None:
        if waits := waiting_reason([view]).removeprefix(f"{view.task.id} waits: "):
            return waits
        node = node_of(view.pod)
        return f"its containers are not started yet on node {node}" if node else "it has no node yet"
    if view is situation.chief and (waits := why_the_chief_waits(situation)):
        return waits.removeprefix(f"{view.task.id} waits: ")
    incident = situation.status.internal.incident
    if incident is not None and not is_due(incident, situation.now):
        return f"the next start is at {times.rfc3339(incident.not_before)} (failurePolicy.backoff)"
    return f"its pod {topology.pod_name(situation.group_job, view.task, view.attempt)} is not made yet"


def _tasks(ids: list[str]) -> str:
    named = ", ".join(ids[:NAMED])
    return f"{named} and {len(ids) - NAMED} more" if len(ids) > NAMED else named
