"""The class that a queued job's place in its queue depends on, and its value."""

from __future__ import annotations

from dtjob.objects import kueue
from dtjob.plan.actions import Action
from dtjob.plan.queue_words import no_priority_class
from dtjob.plan.situation import Situation
from dtjob.plan.workload import Workload


def priority(situation: Situation) -> tuple[tuple[tuple[str, str], ...], kueue.Priority | None, str]:
    """What to read for the class that the job names, the class itself, and what is said where there is none such."""
    named = kueue.priority_class_of(situation.job, situation.defaults)
    if named is None:
        return (), None, ""
    if named not in situation.children.read:
        return (named,), None, ""
    found = situation.children.read[named]
    if found is None:
        return (), None, no_priority_class(*named)
    return (), kueue.Priority(*named, int(found.get("value", 0))), ""


def priority_changes(
    situation: Situation, workload: Workload
) -> tuple[tuple[tuple[str, str], ...], tuple[Action, ...]]:
    """What to read, and what to write, where the job names another WorkloadPriorityClass: that may change at any time,
    but for a Workload that holds quota and had no such class. A class that is not there changes nothing."""
    named, now = kueue.priority_class_of(situation.job, situation.defaults), workload.priority_class
    kinds = (named[0] if named else "", now[0] if now else "")
    if workload.shape is None or named == now or kinds[0] != "WorkloadPriorityClass":
        return (), ()
    if workload.reserved and kinds[1] != kinds[0]:
        return (), ()
    read, chosen, _ = priority(situation)
    if chosen is None:
        return read, ()
    return (), (workload.change(chosen.spec(), f"the job's priority class is {chosen.name}"),)
