"""The conditions of a job in a queue: QuotaReserved and Admitted as its Workload has them, and QueueNameIgnored."""

from __future__ import annotations

from dtjob.plan.record.conditions import ADMITTED, QUEUE_IGNORED, QUOTA_RESERVED, holds
from dtjob.plan.record.status import set_condition
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import Workload


def mirrored(situation: Situation, workload: Workload) -> Situation:
    """The situation with the Workload's conditions as the job's."""
    status = situation.status
    for type_ in (QUOTA_RESERVED, ADMITTED):
        said = workload.condition(type_)
        there = (said.get("status") == "True", said.get("reason", "Pending"), said.get("message", ""))
        status = set_condition(status, type_, *there, situation.now, always=True)
    return situation.with_status(status)


def unreserved(situation: Situation, why: str) -> Situation:
    """The situation of a job that has no Workload."""
    status = situation.status
    for type_ in (QUOTA_RESERVED, ADMITTED):
        status = set_condition(status, type_, False, "NoWorkload", why, situation.now, always=True)
    return situation.with_status(status)


def say_ignored(situation: Situation, why: str) -> Situation:
    """The situation, with why the job's label does nothing yet; empty: it does."""
    reason = "JobRuns" if why else "QueueName"
    return situation.with_status(set_condition(situation.status, QUEUE_IGNORED, bool(why), reason, why, situation.now))


def ended(situation: Situation) -> Situation:
    """The situation of a job that has ended: there is no next start for which its label could count."""
    status = situation.status
    if not holds(status.conditions, QUEUE_IGNORED):
        return situation
    return situation.with_status(set_condition(status, QUEUE_IGNORED, False, "JobEnded", "", situation.now))


def without_entry(situation: Situation, ignored: str = "") -> Situation:
    """The situation of a job in no queue. Conditions of the time when it was in one turn False."""
    status = situation.status
    for type_ in (QUOTA_RESERVED, ADMITTED):
        if holds(status.conditions, type_):
            status = set_condition(status, type_, False, "NoWorkload", "", situation.now)
    if status.queue is not None:
        status = status.but(queue=None)
    if status is not situation.status:
        situation = situation.with_status(status)
    if ignored or holds(status.conditions, QUEUE_IGNORED):
        return say_ignored(situation, ignored)
    return situation
