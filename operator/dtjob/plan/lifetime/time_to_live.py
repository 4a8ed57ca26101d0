# SPDX-License-Identifier: Apache-2.0
"""Time to live: when a job that has ended is deleted."""

from __future__ import annotations

from datetime import datetime, timedelta

from dtjob.api.job import KIND
from dtjob.api.phase import Phase
from dtjob.plan.actions import Delete
from dtjob.plan.lifetime.last_evaluation import evaluator_left
from dtjob.plan.seen.situation import LOOK_AT_LEAST_EVERY, Situation


def deletion(situation: Situation, lingers: bool) -> tuple[list[Delete], datetime | None]:
    """The deletion of the job if its time has come, and else when to look again.

    `lingers`: some of its pods may still end by themselves, and are waited for. An evaluator that has the last
    checkpoint to evaluate is waited for, too.
    """
    status, metadata = situation.status, situation.group_job.metadata
    spec, ended_at = situation.group_job.spec, status.completion_time
    failed = status.phase is Phase.FAILED and spec.ttl_seconds_after_failed is not None
    seconds = spec.ttl_seconds_after_failed if failed else spec.ttl_seconds_after_finished
    if seconds is None or ended_at is None or lingers or evaluator_left(situation) is not None:
        return [], None
    due = ended_at + timedelta(seconds=seconds)
    if situation.now < due:
        return [], min(due, situation.now + LOOK_AT_LEAST_EVERY)
    outcome = "failed" if status.phase is Phase.FAILED else "succeeded"
    field = "ttlSecondsAfterFailed" if failed else "ttlSecondsAfterFinished"
    why = f"it {outcome} {seconds} s ago ({field})"
    # The field may have been raised, or the job unsuspended, a moment ago: then it is planned for anew.
    return [Delete(KIND, metadata.name, metadata.uid, why, metadata.resource_version)], None
