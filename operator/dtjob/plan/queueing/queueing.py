# SPDX-License-Identifier: Apache-2.0
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
from dtjob.plan.lifetime.phase import current_phase
from dtjob.plan.lifetime.suspension import Pause, is_suspended
from dtjob.plan.queueing.conditions import mirror, note_end, note_no_queue, note_no_workload, say_ignored
from dtjob.plan.queueing.lookups import places_pods, priority, priority_changes, read_flavours
from dtjob.plan.queueing.quota_use import done, next_loss, pods_left
from dtjob.plan.queueing.resized import (
    asked_for,
    held,
    only_resized,
    surplus,
    taken_over,
    waits_for_checks,
    without_successor,
)
from dtjob.plan.queueing.step import FREE, Queueing
from dtjob.plan.queueing.vanished import labelled, looked_for
from dtjob.plan.queueing.waiting import messages_of, pause_of, resized, while_it_waits
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
    draft.situation, unseen = looked_for(draft.situation)
    slices = slices_of(draft.situation)
    found = _queueing(draft, slices)
    entry, more = draft.status.queue, surplus(slices.others)
    if draft.status.ended or entry is None or not entry.runs:
        more = (*without_successor(draft.situation, slices), *more)
    found = replace(found, actions=(*found.actions, *more)) if more else found
    return labelled(draft.situation, unseen, found) if unseen else found


def _queueing(draft: Draft, slices: Slices) -> Queueing:
    job, kueue_is, entry = draft.situation.group_job, draft.situation.children.kueue, draft.status.queue
    name, workload = kueue.queue_of(job), slices.current
    if kueue_is is Kueue.IGNORED or (name is None and entry is None and workload is None):
        note_no_queue(draft)
        return FREE
    if draft.status.ended:
        note_end(draft)
        return _after_the_end(draft.situation, workload)
    if is_suspended(draft.situation):
        return _leave(draft, workload)
    if entry is None and _has_begun(draft.status):
        note_no_queue(draft, ignored_label(name) if name else "")
        return FREE
    if kueue_is is not Kueue.THERE:
        return _nobody_there(draft, name)
    return _without_workload(draft, name) if workload is None else _with_workload(draft, workload, slices, name)


def _has_begun(status: Status) -> bool:
    """Whether the job runs without a queue."""
    return status.start_time is not None and not holds(status.conditions, SUSPENDED)


def _leave(draft: Draft, workload: Workload | None) -> Queueing:
    """A job that its user suspends gives up its place, once no pod is left that uses what it holds. It queues again
    when it goes on, with what it may be by then. The Workload of somebody else's stays."""
    if workload is None:
        note_no_queue(draft)
        return FREE
    mirror(draft, workload)
    if entry := draft.status.queue:
        draft.status = draft.status.but(queue=entry.waiting())
    if workload.shape is None or workload.is_going or pods_left(draft.situation):
        return Queueing(look_again_at=next_loss(draft.situation))
    return Queueing(actions=(workload.delete("the job is suspended (spec.suspend)"),))


def _nobody_there(draft: Draft, name: str | None) -> Queueing:
    """There is nobody to admit the job. What was admitted before goes on."""
    entry, kueue_is = draft.status.queue, draft.situation.children.kueue
    if entry is not None and entry.runs:
        return FREE
    if name is None:
        note_no_queue(draft)
        return FREE
    draft.status = draft.status.but(queue=QueueEntry(name=name))
    if kueue_is is Kueue.UNKNOWN:
        return Queueing(Pause("Queued", f"queued in {name}: Kueue has not been asked yet", *messages_of(name)))
    return Queueing(Pause("NoKueue", FORBIDDEN if kueue_is is Kueue.FORBIDDEN else ABSENT, *messages_of(name)))


def _without_workload(draft: Draft, name: str | None) -> Queueing:
    """Make the Workload, once no pod of the time before is left: they use what nobody has counted."""
    if name is None:
        note_no_queue(draft)
        return FREE
    entry = draft.status.queue or QueueEntry(name=name)
    draft.status = draft.status.but(queue=entry.waiting().but(name=name, workload=""))
    note_no_workload(draft, "its Workload is gone" if entry.runs else "")
    situation = draft.situation
    words = queued(situation.spec_job, name, situation.defaults, None, situation.children.problems)
    pause = Pause("Queued", words, messages_of(name)[0], "the job's Workload is gone")
    if pods_left(situation):
        return Queueing(pause, look_again_at=next_loss(situation))
    if prebuilt := kueue.prebuilt_of(situation.group_job):
        return _adopt(situation, prebuilt, pause)
    chosen, missing = priority(situation)
    near = places_pods(situation, name)
    if missing:
        waits = replace(pause, reason="NoPriorityClass", message=missing)
        return Queueing(waits, look_again_at=situation.now + LOOK_AGAIN)
    make = Create.of(kueue.workload(situation.spec_job, situation.defaults, chosen, near))
    return Queueing(pause, actions=(make,))


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


def _with_workload(draft: Draft, workload: Workload, slices: Slices, name: str | None) -> Queueing:
    mirror(draft, workload)
    situation = draft.situation
    before = situation.status.queue or QueueEntry(name=workload.queue)
    entry = before.but(name=workload.queue, workload=workload.name)
    stale = workload.shape not in (None, kueue.shape_of(situation.spec_job))
    fits = not stale or only_resized(situation.spec_job, workload)
    if entry.uid == workload.uid and (slices.covers or (workload.admitted and fits)):
        return _runs(draft, workload, slices, held(entry, workload), name)
    if waits_for_checks(workload, before):
        return FREE
    if workload.admitted and fits:
        if before.runs and workload.replaces == before.workload:
            entry = taken_over(situation, workload, before).but(name=workload.queue, workload=workload.name)
            return _admitted(draft, workload, slices, entry, name, again=" anew")
        if not pods_left(situation):
            return _begin(draft, workload, slices, entry, name)
    draft.status = draft.status.but(queue=entry.waiting())
    return _waits(draft, workload, name, stale, before.runs)


def _admitted(
    draft: Draft, workload: Workload, slices: Slices, entry: QueueEntry, name: str | None, again: str = ""
) -> Queueing:
    """The job was admitted just now; `again`: for more workers than it runs with."""
    runs = _runs(draft, workload, slices, entry, name)
    admitted = Event("Normal", ADMITTED_EVENT, f"Admitted{again} by cluster queue {workload.cluster_queue}")
    return replace(runs, events=(admitted, *runs.events))


def _begin(draft: Draft, workload: Workload, slices: Slices, entry: QueueEntry, name: str | None) -> Queueing:
    """The job was admitted: find out where its pods are to go, and write that down before any of them is made."""
    draft.status = draft.status.but(queue=entry.waiting())
    begins = Pause(ADMITTED, f"admitted by cluster queue {workload.cluster_queue}", *messages_of(workload.queue))
    flavours, missing = read_flavours(draft.situation, workload)
    if missing:
        said = f"admitted by cluster queue {workload.cluster_queue}, but there is no ResourceFlavor {missing[0]}"
        return Queueing(replace(begins, message=said), look_again_at=draft.now + LOOK_AGAIN)
    try:
        sets = pod_sets(draft.situation.spec_job, workload, flavours)
    except Conflict as conflict:
        failed = workload.finish("FailedToStart", str(conflict), draft.now)
        return Queueing(replace(begins, message=str(conflict)), actions=(failed,))
    return _admitted(draft, workload, slices, entry.admitted(workload.uid, workload.cluster_queue, sets), name)


def _runs(draft: Draft, workload: Workload, slices: Slices, entry: QueueEntry, name: str | None) -> Queueing:
    """The job is admitted, and its pods may be there."""
    draft.status = draft.status.but(queue=entry)
    say_ignored(draft, changed_queue(workload.queue, name) if name != workload.queue else "")
    situation = draft.situation
    changes = priority_changes(situation, workload)
    if slices.covers:  # it is over, and holds nothing that anybody would be told of
        return FREE
    ready = current_phase(situation).phase is Phase.RUNNING
    kept = None if changes else workload.keep(ready, done(situation), situation.now)
    return Queueing(actions=(*changes, *((kept,) if kept else ()), *asked_for(situation, slices)))


def _waits(draft: Draft, workload: Workload, name: str | None, stale: bool, ran: bool) -> Queueing:
    """The job is not, or no more, admitted: what is left of it ends, and then its quota is given back."""
    say_ignored(draft, "")
    situation = draft.situation
    if name is None and not (workload.reserved or pods_left(situation)):
        gone = workload.delete(f"the job's label {kueue.QUEUE} is gone")
        note_no_queue(draft)
        return Queueing(actions=() if workload.is_going else (gone,))
    pause = resized(situation, workload) if stale else pause_of(situation, workload)
    events = (Event("Normal", EVICTED_EVENT, evicted(workload)),) if ran and workload.evicted else ()
    if workload.is_going or pods_left(situation):
        return Queueing(pause, events=events, look_again_at=next_loss(situation))
    return Queueing(pause, while_it_waits(situation, workload, name, stale), events)


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
