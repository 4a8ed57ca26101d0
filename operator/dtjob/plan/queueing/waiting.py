# SPDX-License-Identifier: Apache-2.0
"""What a job in a queue waits for, in words, and what is done about its Workload meanwhile."""

from collections.abc import Mapping
from typing import Any

from dtjob.api.job import Job
from dtjob.objects import kueue
from dtjob.objects.defaults import Defaults
from dtjob.plan.actions import Action
from dtjob.plan.kueue import places_pods, priority_changes
from dtjob.plan.lifetime.suspension import Pause
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import ADMITTED, EVICTED, FINISHED, QUOTA_RESERVED, Workload

ABSENT = (
    f"label {kueue.QUEUE} is set, but this cluster has no Kueue ({kueue.API_VERSION}): the job waits until there is; "
    "take the label away to run it without a queue"
)
FORBIDDEN = (
    f"label {kueue.QUEUE} is set, but this operator may not see Workloads ({kueue.API_VERSION}): the job waits; have "
    "its administrator set kueue.enabled in the chart's values, or take the label away to run it without a queue"
)


def pause_of(situation: Situation, workload: Workload) -> Pause:
    """What the job waits for."""
    event, cause = messages_of(workload.queue)
    if workload.finished:
        why = _why(workload.condition(FINISHED))
        words = (
            f"Workload {workload.name} is finished {why}, and the job is not: delete that Workload, and the job is "
            "queued again"
        )
        return Pause("WorkloadFinished", words, event, "the job's Workload is finished")
    if workload.evicted:
        cause = evicted(workload)
    if not workload.active:
        said = workload.condition(EVICTED).get("message")
        why = f": {said}" if said else ""
        words = (
            f"Workload {workload.name} is deactivated{why}; the job is queued again when its spec.active is true "
            "(kubectl patch workloads.kueue.x-k8s.io)"
        )
        return Pause("Deactivated", words, event, cause)
    if workload.reserved and not workload.evicted:
        return Pause(QUOTA_RESERVED, reserved(workload), event, cause)
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


def queued(job: Job, queue: str, defaults: Defaults, workload: Workload | None, problems: Mapping[str, str]) -> str:
    """The message of a job that waits for quota: for how much, and what Kueue says. Kueue tells the place in the queue
    only through its visibility API, which dtjob does not ask."""
    words = f"queued in {queue}, position unknown; needs {kueue.needs(job, defaults)}"
    if refused := [f"{what}: {why}" for what, why in sorted(problems.items()) if kueue.KIND in what]:
        return f"{words}; {refused[0]}"
    said = workload.condition(QUOTA_RESERVED).get("message") if workload else ""
    return f"{words}; Kueue says: {said}" if said else words


def reserved(workload: Workload) -> str:
    """The message of a job that has its quota: what the job still waits for."""
    waiting = [one for one in workload.checks if one.get("state") != "Ready"]
    named = "; ".join(
        f"{one['name']} is {one.get('state', 'Pending')}" + (f" ({one['message']})" if one.get("message") else "")
        for one in waiting
    )
    said = named or workload.condition(ADMITTED).get("message") or "its admission"
    what = "" if not waiting else "admission check " if len(waiting) == 1 else "admission checks "
    return f"quota is reserved in cluster queue {workload.cluster_queue}; waits for {what}{said}"


def evicted(workload: Workload) -> str:
    """Why Kueue takes the job's quota away."""
    return f"evicted by Kueue {_why(workload.condition(EVICTED))}"


def _why(said: Mapping[str, Any]) -> str:
    return f"({said.get('reason', 'unknown')}: {said.get('message', '')})"
