# SPDX-License-Identifier: Apache-2.0
"""The conditions of a job in a queue: QuotaReserved and Admitted of its Workload, and QueueNameIgnored."""

from __future__ import annotations

from dtjob.plan.draft import Draft
from dtjob.plan.record.conditions import ADMITTED, QUEUE_IGNORED, QUOTA_RESERVED, holds
from dtjob.plan.record.status import set_condition
from dtjob.plan.seen.workload import Workload


def mirror(draft: Draft, workload: Workload) -> None:
    """Set the Workload's conditions as the job's."""
    for type_ in (QUOTA_RESERVED, ADMITTED):
        said = workload.condition(type_)
        there = (said.get("status") == "True", said.get("reason", "Pending"), said.get("message", ""))
        draft.status = set_condition(draft.status, type_, *there, draft.now, always=True)


def note_no_workload(draft: Draft, why: str) -> None:
    """Say of a job in a queue that it has no Workload."""
    for type_ in (QUOTA_RESERVED, ADMITTED):
        draft.status = set_condition(draft.status, type_, False, "NoWorkload", why, draft.now, always=True)


def say_ignored(draft: Draft, why: str) -> None:
    """Say why the job's label does nothing yet; empty: it does."""
    reason = "JobRuns" if why else "QueueName"
    draft.status = set_condition(draft.status, QUEUE_IGNORED, bool(why), reason, why, draft.now)


def note_end(draft: Draft) -> None:
    """The job has ended: there is no next start for which its label could count."""
    if holds(draft.status.conditions, QUEUE_IGNORED):
        draft.status = set_condition(draft.status, QUEUE_IGNORED, False, "JobEnded", "", draft.now)


def note_no_queue(draft: Draft, ignored: str = "") -> None:
    """The job is in no queue. Conditions of the time when it was in one turn False."""
    before = draft.status
    for type_ in (QUOTA_RESERVED, ADMITTED):
        if holds(before.conditions, type_):
            draft.status = set_condition(draft.status, type_, False, "NoWorkload", "", draft.now)
    if before.queue is not None:
        draft.status = draft.status.but(queue=None)
    if ignored or holds(before.conditions, QUEUE_IGNORED):
        say_ignored(draft, ignored)
