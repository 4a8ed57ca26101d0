"""What is done about the Workload of a job that waits in a queue, once none of its pods uses what it holds."""

from __future__ import annotations

from dtjob.objects import kueue
from dtjob.plan.actions import Action
from dtjob.plan.queueing.priority import priority_changes
from dtjob.plan.queueing.topology import places_pods
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import Workload


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
