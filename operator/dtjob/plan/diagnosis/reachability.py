# SPDX-License-Identifier: Apache-2.0
"""Reachability: a condition says that the chief task runs and its status cannot be read for some time.

Without it a user sees a job that runs and no step, no checkpoint, and no word about why: a NetworkPolicy or a service
mesh stands between the operator and the pod. Nothing follows from it for the training itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from dtjob import times
from dtjob.api.status.status import Status
from dtjob.plan.draft import Draft
from dtjob.plan.record.conditions import condition
from dtjob.plan.record.status import set_condition
from dtjob.plan.seen.children import PodState, Silence
from dtjob.plan.seen.situation import Situation

STATUS_REACHABLE = "StatusReachable"
"""The condition's type. It is there from the first time that a status could not be read for so long."""
SAID_AFTER = timedelta(seconds=60)
"""A supervisor that starts, and a node that is busy, are silent for shorter."""


def say_reachability(draft: Draft) -> None:
    """Set the condition if it is to change, and tell users when a status has just become unreachable."""
    situation, status, silence = draft.situation, draft.status, _silence(draft.situation)
    said = condition(status.conditions, STATUS_REACHABLE)
    known = said.status if said else None
    if silence is None:
        if known in ("False", "Unknown") and _answers(situation):
            _set_reachable(draft, True, "Answers", "")
        return
    if situation.now < silence.since + SAID_AFTER:
        return
    message = _message(situation, silence)
    if known is None:  # conditions that never held are left out, and this one begins by not holding
        _set_reachable(draft, True, "Answers", "")
    if known != "False":
        draft.add_event("Warning", "StatusUnreachable", message)
    _set_reachable(draft, False, silence.reason, message)


def nothing_to_reach(status: Status, reason: str, now: datetime) -> Status:
    """The status of a job that is to have no chief now. Whether its status could be read says nothing any more."""
    said = condition(status.conditions, STATUS_REACHABLE)
    if said is None or said.status != "False":
        return status
    return set_condition(status, STATUS_REACHABLE, None, reason, "", now)


def reachability_changes_at(situation: Situation) -> datetime | None:
    """When silence alone changes the condition."""
    silence = _silence(situation)
    return silence.since + SAID_AFTER if silence else None


def _silence(situation: Situation) -> Silence | None:
    """The silence of the pod that is the chief task now, while it runs."""
    chief = situation.chief
    silence = situation.children.silences.get(chief.task.id)
    if silence is None or chief.pod is None or chief.state is not PodState.RUNNING:
        return None
    return silence if silence.pod_uid == chief.pod["metadata"]["uid"] else None


def _answers(situation: Situation) -> bool:
    task = situation.chief.task.id
    return task in situation.children.reports and task not in situation.children.silences


def _set_reachable(draft: Draft, holds: bool, reason: str, message: str) -> None:
    draft.status = set_condition(draft.status, STATUS_REACHABLE, holds, reason, message, draft.now)


def _message(situation: Situation, silence: Silence) -> str:
    port = situation.group_job.spec.network.status_port
    return (
        f"the status of {situation.chief.task.id} at {silence.address} cannot be read since "
        f"{times.rfc3339(silence.since)}: {silence.message}; training goes on, but its steps and checkpoints are "
        f"unknown here. Look for a NetworkPolicy that keeps the operator from port {port}, for a service mesh "
        f"(keep it out of the job's pods), and at the pod's log"
    )
