"""Time to live: when an ended job is deleted, with all that belongs to it."""

from __future__ import annotations

from datetime import datetime, timedelta

from dtjob.api.job import KIND
from dtjob.api.phase import Phase
from dtjob.plan.actions import Delete
from dtjob.plan.policies.deadlines import LOOK_AT_LEAST_EVERY
from dtjob.plan.policies.last_evaluation import evaluator_left
from dtjob.plan.situation import Situation


def deletion(situation: Situation, lingers: bool) -> tuple[list[Delete], datetime | None]:
    """The job's own deletion where its time has come, and when to look again where it has not.

    `lingers`: some of its pods are still given time to end by themselves. They are waited for, and so is an evaluator
    that has yet to look at what was saved last.
    """
    status, metadata = situation.status, situation.job.metadata
    ttl, ended_at = situation.job.spec.run_policy.ttl_seconds_after_finished, status.completion_time
    if ttl is None or ended_at is None:
        return [], None
    outcome = "succeeded" if status.phase is Phase.SUCCEEDED else "failed"
    seconds = ttl.succeeded if status.phase is Phase.SUCCEEDED else ttl.failed
    if seconds is None or lingers or evaluator_left(situation) is not None:
        return [], None
    due = ended_at + timedelta(seconds=seconds)
    if situation.now < due:
        return [], min(due, situation.now + LOOK_AT_LEAST_EVERY)
    why = f"it has {outcome} {seconds} s ago (runPolicy.ttlSecondsAfterFinished.{outcome})"
    # The field may have been raised, or the job unsuspended, a moment ago: then it is planned for anew.
    return [Delete(KIND, metadata.name, metadata.uid, why, metadata.resource_version)], None
