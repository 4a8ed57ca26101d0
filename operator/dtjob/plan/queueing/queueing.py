"""Queueing: a job with the label `kueue.x-k8s.io/queue-name` has pods only while Kueue admits it.

dtjob keeps the job's Workload (`objects/kueue.py`): makes it, has the pods wait for its admission, says whether they
run and which are needed no more, and in the end that it is over. A job that is evicted stops as a suspended one does:
all pods are told to end at once and save, and only when the last of them has ended is the quota given back. What is
observed decides each step, so that one that was cut off is done again. Steps and their order are those of Kueue's own
controllers of jobs (v0.19, pkg/controller/jobframework/reconciler.go).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from dtjob.api.phase import Phase
from dtjob.api.status.placement import QueueEntry
from dtjob.api.status.status import Status
from dtjob.objects import kueue, labels, shared
from dtjob.plan.actions import Create, Delete, Event
from dtjob.plan.draft import Draft
from dtjob.plan.kueue.placement import Conflict, pod_sets
from dtjob.plan.kueue.slices import Slices, slices_of
from dtjob.plan.kueue.words import ABSENT, FORBIDDEN, changed_queue, evicted, ignored_label, queued, waits_for_prebuilt
from dtjob.plan.lifetime.last_evaluation import evaluator_left
from dtjob.plan.lifetime.phase import standing
from dtjob.plan.lifetime.suspension import Pause, is_suspended
from dtjob.plan.queueing.conditions import ended, mirrored, say_ignored, unreserved, without_entry
from dtjob.plan.queueing.pause import pause_of, resized, told
from dtjob.plan.queueing.priority import priority, priority_changes
from dtjob.plan.queueing.quota_use import done, next_loss, pods_left
from dtjob.plan.queueing.resized import (
    asked_for,
    held,
    only_resized,
    read_flavours,
    surplus,
    taken_over,
    waits_for_checks,
    without_successor,
)
from dtjob.plan.queueing.step import FREE, Queueing, Step
from dtjob.plan.queueing.topology import places_pods
from dtjob.plan.queueing.unseen import labelled, looked_for
from dtjob.plan.queueing.wait import while_it_waits
from dtjob.plan.record.conditions import ADMITTED, SUSPENDED, holds
from dtjob.plan.seen.children import deleting
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import Kueue, Workload

_OVER = Pause("WorkloadFinished", "")
"""Of a job that has ended: nothing of it is made any more."""
LOOK_AGAIN = timedelta(seconds=10)
"""What was asked for and is not there (a class, a flavour, a Workload of somebody else's) is asked for again."""
ADMITTED_EVENT = "Admitted"
EVICTED_EVENT = "Evicted"


def queueing(draft: Draft) -> Queueing:
    """Write the job's place in its queue into its status; what that means for the job. Raises Unread."""
    situation, unseen = looked_for(draft.situation)
    slices = slices_of(situation)
    situation, found = _queueing(situation, slices)
    draft.situation = situation
    entry, more = situation.status.queue, surplus(slices.others)
    if situation.status.ended or entry is None or not entry.runs:
        more = (*without_successor(situation, slices), *more)
    found = replace(found, actions=(*found.actions, *more)) if more else found
    return labelled(situation, unseen, found) if unseen else found


def _queueing(situation: Situation, slices: Slices) -> Step:
    job, entry = situation.group_job, situation.status.queue
    name, workload = kueue.queue_of(job), slices.current
    if situation.children.kueue is Kueue.IGNORED or (name is None and entry is None and workload is None):
        return without_entry(situation), FREE
    if situation.status.ended:
        return ended(situation), _after_the_end(situation, workload)
    if is_suspended(situation):
        return _leave(situation, workload)
    if entry is None and _has_begun(situation.status):
        return without_entry(situation, ignored_label(name) if name else ""), FREE
    return _in_queue(situation, slices, name)


def _in_queue(situation: Situation, slices: Slices, name: str | None) -> Step:
    if situation.children.kueue is not Kueue.THERE:
        return _nobody_there(situation, name)
    if slices.current is None:
        return _without_workload(situation, name)
    return _with_workload(mirrored(situation, slices.current), slices.current, slices, name)


def _has_begun(status: Status) -> bool:
    """Whether the job runs without a queue."""
    return status.start_time is not None and not holds(status.conditions, SUSPENDED)


def _leave(situation: Situation, workload: Workload | None) -> Step:
    """A job that its user suspends gives up its place, once no pod is left that uses what it holds. It queues again
    when it goes on, with what it may be by then. The Workload of somebody else's stays."""
    if workload is None:
        return without_entry(situation), FREE
    entry = situation.status.queue
    situation = mirrored(situation, workload)
    if entry:
        situation = situation.with_status(situation.status.but(queue=entry.waiting()))
    ours = workload.shape is not None
    if not ours or workload.is_going or pods_left(situation):
        return situation, Queueing(look_again_at=next_loss(situation))
    return situation, Queueing(actions=(workload.delete("the job is suspended (spec.suspend)"),))


def _nobody_there(situation: Situation, name: str | None) -> Step:
    """There is nobody to admit the job. What was admitted before goes on."""
    entry = situation.status.queue
    if entry is not None and entry.runs:
        return situation, FREE
    if name is None:
        return without_entry(situation), FREE
    situation = situation.with_status(situation.status.but(queue=QueueEntry(name=name)))
    if situation.children.kueue is Kueue.UNKNOWN:
        return situation, Queueing(Pause("Queued", f"queued in {name}: Kueue has not been asked yet", *told(name)))
    words = FORBIDDEN if situation.children.kueue is Kueue.FORBIDDEN else ABSENT
    return situation, Queueing(Pause("NoKueue", words, *told(name)))


def _without_workload(situation: Situation, name: str | None) -> Step:
    """Make the Workload, once no pod of the time before is left: they use what nobody has counted."""
    if name is None:
        return without_entry(situation), FREE
    job, entry = situation.group_job, situation.status.queue or QueueEntry(name=name)
    ran = entry.runs
    entry = entry.waiting().but(name=name, workload="")
    situation = unreserved(
        situation.with_status(situation.status.but(queue=entry)), "its Workload is gone" if ran else ""
    )
    words = queued(situation.spec_job, name, situation.defaults, None, situation.children.problems)
    pause = Pause("Queued", words, told(name)[0], "the job's Workload is gone")
    if pods_left(situation):
        return situation, Queueing(pause, look_again_at=next_loss(situation))
    if prebuilt := kueue.prebuilt_of(job):
        return situation, _adopt(situation, prebuilt, pause)
    chosen, missing = priority(situation)
    near = places_pods(situation, name)
    if missing:
        waits = replace(pause, reason="NoPriorityClass", message=missing)
        return situation, Queueing(waits, look_again_at=situation.now + LOOK_AGAIN)
    make = Create.of(kueue.workload(situation.spec_job, situation.defaults, chosen, near))
    return situation, Queueing(pause, actions=(make,))


def _adopt(situation: Situation, name: str, pause: Pause) -> Queueing:
    """Take over the Workload that somebody else has made for this job."""
    (found,) = situation.children.found((kueue.KIND, name))
    owner = labels.controller_uid(found) if found else None
    waits = replace(pause, reason="NoWorkload", message=waits_for_prebuilt(name, owner is not None))
    later = situation.now + LOOK_AGAIN
    if found is None or owner is not None:
        return Queueing(waits, look_again_at=later)
    wanted = shared.owned_metadata(situation.group_job, name, {kueue.JOB_UID: situation.group_job.metadata.uid})
    return Queueing(waits, actions=(Workload(found).adopt(wanted),), look_again_at=later)


def _with_workload(situation: Situation, workload: Workload, slices: Slices, name: str | None) -> Step:
    before = situation.status.queue or QueueEntry(name=workload.queue)
    entry = before.but(name=workload.queue, workload=workload.name)
    stale = workload.shape not in (None, kueue.shape_of(situation.spec_job))
    fits = not stale or only_resized(situation.spec_job, workload)
    if entry.uid == workload.uid and (slices.covers or (workload.admitted and fits)):
        return _runs(situation, slices, held(entry, workload), name)
    if waits_for_checks(workload, before):
        return situation, FREE
    if workload.admitted and fits:
        if before.runs and workload.replaces == before.workload:
            return _took_over(situation, slices, taken_over(situation, workload, before), name)
        if not pods_left(situation):
            return _begin(situation, slices, entry, name)
    situation = situation.with_status(situation.status.but(queue=entry.waiting()))
    return _waits(situation, workload, name, stale, before.runs)


def _took_over(situation: Situation, slices: Slices, entry: QueueEntry, name: str | None) -> Step:
    """More workers were admitted: the job goes on with the Workload that asked for them."""
    assert slices.current is not None
    entry = entry.but(name=slices.current.queue, workload=slices.current.name)
    admitted = Event("Normal", ADMITTED_EVENT, f"Admitted anew by cluster queue {slices.current.cluster_queue}")
    situation, runs = _runs(situation, slices, entry, name)
    return situation, replace(runs, events=(admitted, *runs.events))


def _begin(situation: Situation, slices: Slices, entry: QueueEntry, name: str | None) -> Step:
    """The job was admitted: find out where its pods are to go, and write that down before any of them is made."""
    workload = slices.current
    assert workload is not None
    waiting = situation.with_status(situation.status.but(queue=entry.waiting()))
    begins = Pause(ADMITTED, f"admitted by cluster queue {workload.cluster_queue}", *told(workload.queue))
    flavours, missing = read_flavours(situation, workload)
    if missing:
        said = f"admitted by cluster queue {workload.cluster_queue}, but there is no ResourceFlavor {missing[0]}"
        return waiting, Queueing(replace(begins, message=said), look_again_at=situation.now + LOOK_AGAIN)
    try:
        sets = pod_sets(situation.spec_job, workload, flavours)
    except Conflict as conflict:
        failed = workload.finish("FailedToStart", str(conflict), situation.now)
        return waiting, Queueing(replace(begins, message=str(conflict)), actions=(failed,))
    entry = entry.admitted(workload.uid, workload.cluster_queue, sets)
    admitted = Event("Normal", ADMITTED_EVENT, f"Admitted by cluster queue {workload.cluster_queue}")
    situation, runs = _runs(situation, slices, entry, name)
    return situation, replace(runs, events=(admitted, *runs.events))


def _runs(situation: Situation, slices: Slices, entry: QueueEntry, name: str | None) -> Step:
    """The job is admitted, and its pods may be there."""
    workload = slices.current
    assert workload is not None
    situation = situation.with_status(situation.status.but(queue=entry))
    ignored = changed_queue(workload.queue, name) if name != workload.queue else ""
    situation = say_ignored(situation, ignored)
    changes = priority_changes(situation, workload)
    if slices.covers:  # it is over, and holds nothing that anybody would be told of
        return situation, FREE
    ready = standing(situation).phase is Phase.RUNNING
    kept = None if changes else workload.keep(ready, done(situation), situation.now)
    asked = asked_for(situation, slices)
    return situation, Queueing(actions=(*changes, *((kept,) if kept else ()), *asked))


def _waits(situation: Situation, workload: Workload, name: str | None, stale: bool, ran: bool) -> Step:
    """The job is not, or no more, admitted: what is left of it ends, and then its quota is given back."""
    situation = say_ignored(situation, "")
    if name is None and not (workload.reserved or pods_left(situation)):
        gone = workload.delete(f"the job's label {kueue.QUEUE} is gone")
        return without_entry(situation), Queueing(actions=() if workload.is_going else (gone,))
    pause = resized(situation, workload) if stale else pause_of(situation, workload)
    later = next_loss(situation)
    events = (Event("Normal", EVICTED_EVENT, evicted(workload)),) if ran and workload.evicted else ()
    if workload.is_going or pods_left(situation):
        return situation, Queueing(pause, events=events, look_again_at=later)
    return situation, Queueing(pause, while_it_waits(situation, workload, name, stale), events)


def _after_the_end(situation: Situation, workload: Workload | None) -> Queueing:
    """Say that the Workload is over when no pod of the job is left, and meanwhile which are needed no more.

    An evaluator that is still at what training saved last ends where the job is evicted.
    """
    if workload is None or workload.finished or workload.is_going:
        # There is no quota any more, so an evaluator that is not at work is not made either.
        gone = situation.status.queue is not None and situation.children.kueue is Kueue.THERE
        return Queueing(_OVER) if gone else FREE
    left = pods_left(situation)
    away = () if workload.admitted else tuple(Delete.of(pod, evicted(workload)) for pod in left if not deleting(pod))
    works = workload.admitted and evaluator_left(situation) is not None
    if left or works:
        kept = workload.keep(True, done(situation), situation.now) if workload.admitted else None
        pause = None if workload.admitted else pause_of(situation, workload)
        return Queueing(pause, (*away, *((kept,) if kept else ())), look_again_at=next_loss(situation))
    status = situation.status
    outcome = "Succeeded" if status.phase is Phase.SUCCEEDED else "Failed"
    return Queueing(_OVER, (workload.finish(outcome, status.message or "", situation.now),))
