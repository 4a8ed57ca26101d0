# SPDX-License-Identifier: Apache-2.0
"""What a job in a queue waits for, in words, and what is done about its Workload meanwhile."""

from __future__ import annotations

from dtjob.objects import kueue
from dtjob.plan.actions import Action
from dtjob.plan.kueue.words import deactivated, evicted, finished, queued, waits_for_checks
from dtjob.plan.lifetime.suspension import Pause
from dtjob.plan.queueing.lookups import places_pods, priority_changes
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import QUOTA_RESERVED, Workload


def pause_of(situation: Situation, workload: Workload) -> Pause:
    """What the job waits for."""
    event, cause = messages_of(workload.queue)
    if workload.finished:
        return Pause("WorkloadFinished", finished(workload), event, "the job's Workload is finished")
    if workload.evicted:
        cause = evicted(workload)
    if not workload.active:
        return Pause("Deactivated", deactivated(workload), event, cause)
    if workload.reserved and not workload.evicted:
        return Pause(QUOTA_RESERVED, waits_for_checks(workload), event, cause)
    words = queued(situation.spec_job, workload.queue, situation.defaults, workload, situation.children.problems)
    return Pause("Queued", words, event, cause)


def resized(situation: Situation, workload: Workload) -> Pause:
    """Of a job whose replicas have changed: what was admitted is not what it asks for now, so it queues again."""
    words = queued(situation.spec_job, workload.queue, situation.defaults, None, {})
    cause = evicted(workload) if workload.evicted else "spec.replicaSpecs has changed, and has to be admitted anew"
    return Pause("Queued", words, messages_of(workload.queue)[0], cause)


def messages_of(queue: str) -> tuple[str, str]:
    """The message of the condition and the Event, and the cause that is named while pods are left."""
    return f"Job waits in queue {queue}", f"the job waits in queue {queue}"


def while_it_waits(situation: Situation, workload: Workload, name: str | None, stale: bool) -> tuple[Action, ...]:
    """What to do. Raises Unread. `name` is the queue of the job's label; `stale`: the job asks for something else by
    now. A Workload that holds nothing is written anew, so that it keeps its place in the queue."""
    if workload.replaced or (stale and workload.in_force):
        return (workload.delete("it is for the job as it was before"),)
    if workload.evicted and workload.reserved and not workload.finished:
        return (workload.release(situation.now),)
    if name is not None and not (workload.finished or workload.reserved) and (stale or workload.replaces):
        near = places_pods(situation, workload.queue)
        return (workload.ask_anew(kueue.workload(situation.spec_job, situation.defaults, None, near)),)
    changes = priority_changes(situation, workload)
    if not changes and name not in (None, workload.queue) and not workload.reserved:
        changes = (workload.change({"queueName": name}, f"the job's label {kueue.QUEUE} is {name}"),)
    return changes
