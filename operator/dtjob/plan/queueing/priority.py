"""The class that a queued job's place in its queue depends on, and its value."""

from __future__ import annotations

from dtjob.objects import kueue
from dtjob.plan.actions import Action
from dtjob.plan.kueue.words import no_priority_class
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import Workload


def priority(situation: Situation) -> tuple[kueue.Priority | None, str]:
    """The class that the job names, and what is said where there is none such. Raises Unread."""
    named = kueue.priority_class_of(situation.group_job)
    if named is None:
        return None, ""
    (found,) = situation.children.found(named)
    if found is None:
        return None, no_priority_class(*named)
    return kueue.Priority(*named, int(found.get("value", 0))), ""


def priority_changes(situation: Situation, workload: Workload) -> tuple[Action, ...]:
    """What to write where the job names another WorkloadPriorityClass. That may change at any time, but for a Workload
    that holds quota and had no such class. A class that is not there changes nothing. Raises Unread."""
    named, now = kueue.priority_class_of(situation.group_job), workload.priority_class
    kinds = (named[0] if named else "", now[0] if now else "")
    if workload.shape is None or named == now or kinds[0] != "WorkloadPriorityClass":
        return ()
    if workload.reserved and kinds[1] != kinds[0]:
        return ()
    chosen, _ = priority(situation)
    return () if chosen is None else (workload.change(chosen.spec(), f"the job's priority class is {chosen.name}"),)
