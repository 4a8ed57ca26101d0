# SPDX-License-Identifier: Apache-2.0
"""Queueing: a job with the label `kueue.x-k8s.io/queue-name` has pods only while Kueue admits it.

dtjob keeps the job's Workload (`objects/kueue.py`). It makes the Workload, and pods wait for its admission. It says
whether pods run, which are needed no more, and in the end that the job is over. An evicted job stops like a suspended
one. All its pods are told at once to save and end. When the last has ended, its quota is released. What is observed
decides each step, so that one that was cut off is done again. Steps and their order are those of Kueue's own
controllers of jobs (v0.19, pkg/controller/jobframework/reconciler.go).
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from dtjob.api.job import Job
from dtjob.api.phase import ENDED, Phase
from dtjob.api.status.placement import QueueEntry
from dtjob.objects import kueue, labels, shared
from dtjob.objects.defaults import Defaults
from dtjob.plan import kueue as places
from dtjob.plan.actions import Create, Delete, Plan
from dtjob.plan.failure.decisions import write_ahead
from dtjob.plan.kueue import Slices
from dtjob.plan.lifetime.ending import evaluator_left, without_quota
from dtjob.plan.lifetime.phase import current_phase
from dtjob.plan.lifetime.suspension import Pause, is_suspended
from dtjob.plan.queueing import quota, waiting
from dtjob.plan.record.status import ADMITTED, QUEUE_IGNORED, QUOTA_RESERVED, SUSPENDED, holds, set_condition
from dtjob.plan.seen.children import Children, deleting
from dtjob.plan.seen.situation import Draft, Situation
from dtjob.plan.seen.workload import EVICTED, Kueue, Workload

_OVER = Pause("WorkloadFinished", "")
"""Of a job that has ended: nothing of it is made any more."""
LOOK_AGAIN = timedelta(seconds=10)
"""What was asked for and is not there (a class, a flavour, a Workload of somebody else's) is asked for again."""


def queueing(draft: Draft) -> Pause | None:
    """Write the job's place in its queue into its status, and add what is to be done about its Workload.

    Returns why the job is to have no pods, None if it may have them. Raises Unread.
    """
    draft.situation = places.find_in_doubt(draft.situation)
    slices = places.slices_of(draft.situation)
    pause = _queueing(draft, slices)
    entry = draft.status.queue
    if draft.status.ended or entry is None or not entry.runs:
        draft.do(quota.without_successor(draft.situation, slices))
    draft.do(one.delete("another Workload of the job has its place", as_seen=True) for one in slices.others)
    return pause


def _queueing(draft: Draft, slices: Slices) -> Pause | None:
    job, kueue_is, entry = draft.situation.group_job, draft.situation.children.kueue, draft.status.queue
    name, workload = kueue.queue_of(job), slices.current
    if kueue_is is Kueue.IGNORED or (name is None and entry is None and workload is None):
        note_no_queue(draft)
        return None
    if draft.status.ended:
        if holds(draft.status.conditions, QUEUE_IGNORED):  # there is no next start for which the label could count
            draft.status = set_condition(draft.status, QUEUE_IGNORED, False, "JobEnded", "", draft.now)
        return _after_the_end(draft, workload)
    if is_suspended(draft.situation):
        _leave(draft, workload)
        return None
    begun = draft.status.start_time is not None and not holds(draft.status.conditions, SUSPENDED)
    if entry is None and begun:  # it runs without a queue
        ignored = (
            f"label {kueue.QUEUE} is {name}, but the job runs without a queue: it counts when the job goes on after a "
            "suspension (spec.suspend: true, then false)"
        )
        note_no_queue(draft, ignored if name else "")
        return None
    if kueue_is is not Kueue.THERE:
        return _nobody_there(draft, name)
    return _without_workload(draft, name) if workload is None else _with_workload(draft, workload, slices, name)


def _leave(draft: Draft, workload: Workload | None) -> None:
    """A job that its user suspends gives up its place, once no pod is left that uses what it holds. It queues again
    when it goes on, with what it may be by then. The Workload of somebody else's stays."""
    if workload is None:
        note_no_queue(draft)
        return
    mirror(draft, workload)
    if entry := draft.status.queue:
        draft.status = draft.status.but(queue=entry.waiting())
    if workload.shape is None or workload.is_going or quota.pods_left(draft.situation):
        draft.look_again(quota.next_loss(draft.situation))
    else:
        draft.do([workload.delete("the job is suspended (spec.suspend)")])


def _nobody_there(draft: Draft, name: str | None) -> Pause | None:
    """There is nobody to admit the job. What was admitted before goes on."""
    entry, kueue_is = draft.status.queue, draft.situation.children.kueue
    if entry is not None and entry.runs:
        return None
    if name is None:
        note_no_queue(draft)
        return None
    draft.status = draft.status.but(queue=QueueEntry(name=name))
    told = waiting.messages_of(name)
    if kueue_is is Kueue.UNKNOWN:
        return Pause("Queued", f"queued in {name}: Kueue has not been asked yet", *told)
    return Pause("NoKueue", waiting.FORBIDDEN if kueue_is is Kueue.FORBIDDEN else waiting.ABSENT, *told)


def _without_workload(draft: Draft, name: str | None) -> Pause | None:
    """Make the Workload, once no pod of the time before is left: they use what nobody has counted."""
    if name is None:
        note_no_queue(draft)
        return None
    entry = draft.status.queue or QueueEntry(name=name)
    draft.status = draft.status.but(queue=entry.waiting().but(name=name, workload=""))
    why = "its Workload is gone" if entry.runs else ""
    for type_ in (QUOTA_RESERVED, ADMITTED):
        draft.status = set_condition(draft.status, type_, False, "NoWorkload", why, draft.now, always=True)
    situation = draft.situation
    words = waiting.queued(situation.spec_job, name, situation.defaults, None, situation.children.problems)
    pause = Pause("Queued", words, waiting.messages_of(name)[0], "the job's Workload is gone")
    if quota.pods_left(situation):
        draft.look_again(quota.next_loss(situation))
        return pause
    if prebuilt := kueue.prebuilt_of(situation.group_job):
        return _adopt(draft, prebuilt, pause)
    chosen, missing = places.priority(situation)
    near = places.places_pods(situation, name)
    if missing:
        draft.look_again(draft.now + LOOK_AGAIN)
        return replace(pause, reason="NoPriorityClass", message=missing)
    draft.do([Create.of(kueue.workload(situation.spec_job, situation.defaults, chosen, near))])
    return pause


def _adopt(draft: Draft, name: str, pause: Pause) -> Pause:
    """Take over the Workload that somebody else has made for this job."""
    job = draft.situation.group_job
    (found,) = draft.situation.children.found((kueue.KIND, name))
    owner = labels.controller_uid(found) if found else None
    draft.look_again(draft.now + LOOK_AGAIN)
    if found is not None and owner is None:
        wanted = shared.owned_metadata(job, name, {kueue.JOB_UID: job.metadata.uid})
        draft.do([Workload(found).adopt(wanted)])
    what = "is not there yet" if owner is None else "is another's"
    message = f"label {kueue.PREBUILT}: Workload {name} {what}; the job waits for it"
    return replace(pause, reason="NoWorkload", message=message)


def _with_workload(draft: Draft, workload: Workload, slices: Slices, name: str | None) -> Pause | None:
    mirror(draft, workload)
    situation = draft.situation
    before = situation.status.queue or QueueEntry(name=workload.queue)
    entry = before.but(name=workload.queue, workload=workload.name)
    stale = workload.shape not in (None, kueue.shape_of(situation.spec_job))
    fits = not stale or quota.only_resized(situation.spec_job, workload)
    if entry.uid == workload.uid and (slices.covers or (workload.admitted and fits)):
        _run(draft, workload, slices, quota.held(entry, workload), name)
        return None
    replaces = before.runs and workload.replaces == before.workload
    if replaces and workload.in_force and not workload.admitted:
        return None  # it has the quota of that with which the job runs, which is gone, and waits for admission checks
    if workload.admitted and fits:
        if replaces:
            entry = quota.taken_over(situation, workload, before).but(name=workload.queue, workload=workload.name)
            _tell_admitted(draft, workload, again=" anew")
            _run(draft, workload, slices, entry, name)
            return None
        if not quota.pods_left(situation):
            return _begin(draft, workload, slices, entry, name)
    draft.status = draft.status.but(queue=entry.waiting())
    return _wait(draft, workload, name, stale, before.runs)


def _tell_admitted(draft: Draft, workload: Workload, again: str = "") -> None:
    """The job was admitted just now; `again`: for more workers than it runs with."""
    draft.add_event("Normal", ADMITTED, f"Admitted{again} by cluster queue {workload.cluster_queue}")


def _begin(draft: Draft, workload: Workload, slices: Slices, entry: QueueEntry, name: str | None) -> Pause | None:
    """The job was admitted: find out where its pods are to go, and write that down before any of them is made."""
    draft.status = draft.status.but(queue=entry.waiting())
    said = f"admitted by cluster queue {workload.cluster_queue}"
    begins = Pause(ADMITTED, said, *waiting.messages_of(workload.queue))
    flavours, missing = places.read_flavours(draft.situation, workload)
    if missing:
        draft.look_again(draft.now + LOOK_AGAIN)
        return replace(begins, message=f"{said}, but there is no ResourceFlavor {missing[0]}")
    try:
        sets = places.pod_sets(draft.situation.spec_job, workload, flavours)
    except places.Conflict as conflict:
        draft.do([workload.finish("FailedToStart", str(conflict), draft.now)])
        return replace(begins, message=str(conflict))
    _tell_admitted(draft, workload)
    _run(draft, workload, slices, entry.admitted(workload.uid, workload.cluster_queue, sets), name)
    return None


def _run(draft: Draft, workload: Workload, slices: Slices, entry: QueueEntry, name: str | None) -> None:
    """The job is admitted, and its pods may be there."""
    draft.status = draft.status.but(queue=entry)
    label = f"label {kueue.QUEUE} is {name or 'gone'}"
    changed = f"{label}, but the job was admitted by {workload.queue}: it counts when the job is queued again"
    say_ignored(draft, changed if name != workload.queue else "")
    situation = draft.situation
    changes = places.priority_changes(situation, workload)
    if slices.covers:  # it is over, and holds nothing that anybody would be told of
        return
    ready = current_phase(situation).phase is Phase.RUNNING
    kept = None if changes else workload.keep(ready, quota.reclaimable(situation), situation.now)
    draft.do((*changes, *((kept,) if kept else ()), *quota.asked_for(situation, slices)))


def _wait(draft: Draft, workload: Workload, name: str | None, stale: bool, ran: bool) -> Pause | None:
    """The job is not, or no more, admitted: what is left of it ends, and then its quota is given back."""
    say_ignored(draft, "")
    situation = draft.situation
    if name is None and not (workload.reserved or quota.pods_left(situation)):
        note_no_queue(draft)
        if not workload.is_going:
            draft.do([workload.delete(f"the job's label {kueue.QUEUE} is gone")])
        return None
    if ran and workload.evicted:
        draft.add_event("Normal", EVICTED, f"Job {waiting.evicted(workload)}")
    if workload.is_going or quota.pods_left(situation):
        draft.look_again(quota.next_loss(situation))
    else:
        draft.do(waiting.while_it_waits(situation, workload, name, stale))
    return waiting.resized(situation, workload) if stale else waiting.pause_of(situation, workload)


def _after_the_end(draft: Draft, workload: Workload | None) -> Pause | None:
    """Say that the Workload is over when no pod of the job is left, and meanwhile which are needed no more.

    An evaluator that is still at what training saved last ends where the job is evicted.
    """
    situation = draft.situation
    if workload is None or workload.finished or workload.is_going:
        # There is no quota any more, so an evaluator that is not at work is not made either.
        if situation.status.queue is None or situation.children.kueue is not Kueue.THERE:
            return None
        write_ahead(draft, without_quota(situation))
        return _OVER
    left = quota.pods_left(situation)
    if not left and (not workload.admitted or evaluator_left(situation) is None):
        outcome = "Succeeded" if situation.status.phase is Phase.SUCCEEDED else "Failed"
        draft.do([workload.finish(outcome, situation.status.message or "", situation.now)])
        return _OVER
    draft.look_again(quota.next_loss(situation))
    if workload.admitted:
        kept = workload.keep(True, quota.reclaimable(situation), situation.now)
        draft.do([kept] if kept else [])
        return None
    draft.do(Delete.of(pod, waiting.evicted(workload)) for pod in left if not deleting(pod))
    return waiting.pause_of(situation, workload)


def mirror(draft: Draft, workload: Workload) -> None:
    """Set the Workload's conditions as the job's."""
    for type_ in (QUOTA_RESERVED, ADMITTED):
        said = workload.condition(type_)
        there = (said.get("status") == "True", said.get("reason", "Pending"), said.get("message", ""))
        draft.status = set_condition(draft.status, type_, *there, draft.now, always=True)


def say_ignored(draft: Draft, why: str) -> None:
    """Say why the job's label does nothing yet; empty: it does."""
    reason = "JobRuns" if why else "QueueName"
    draft.status = set_condition(draft.status, QUEUE_IGNORED, bool(why), reason, why, draft.now)


def note_no_queue(draft: Draft, ignored: str = "") -> None:
    """The job is in no queue. Conditions of the time when it was in one turn False."""
    before = draft.status
    for type_ in (QUOTA_RESERVED, ADMITTED):
        if holds(before.conditions, type_):
            draft.status = set_condition(draft.status, type_, False, "NoWorkload", "", draft.now)
    if before.queue is not None:
        draft.status = draft.status.but(queue=None)
    if ignored or holds(before.conditions, QUEUE_IGNORED):
        say_ignored(draft, ignored)


CONTROLLER = "kueue.x-k8s.io/multikueue"
"""Of spec.managedBy."""


def runs_elsewhere(spec: Mapping[str, Any]) -> bool:
    """Whether MultiKueue has the job with this `spec`, as plain JSON."""
    return spec.get("managedBy") == CONTROLLER


def keep_workload(job: Job, children: Children, now: datetime, defaults: Defaults) -> Plan:
    """What to do about the Workload of a job that runs elsewhere; its status stays as it is."""
    queue = kueue.queue_of(job)
    if not runs_elsewhere({"managedBy": job.spec.managed_by}) or queue is None or children.kueue is not Kueue.THERE:
        return Plan()
    situation = Situation.of(job, children, now, defaults)
    workload = places.slices_of(situation).current
    if workload is None:
        if job.spec.suspend or situation.status.phase in ENDED:
            return Plan()
        chosen, _ = places.priority(situation)
        return Plan((Create.of(kueue.workload(situation.spec_job, defaults, chosen)),))
    if workload.is_going or workload.finished or workload.shape is None:
        return Plan()
    if job.spec.suspend:
        return Plan((workload.delete("the job is suspended (spec.suspend)"),))
    stale = workload.shape != kueue.shape_of(situation.spec_job)
    fits = workload.in_force and not stale
    return Plan() if fits else Plan(waiting.while_it_waits(situation, workload, queue, stale))
