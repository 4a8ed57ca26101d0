# SPDX-License-Identifier: Apache-2.0
"""Workloads that the watch does not show any more, and which may still hold quota.

A watch by label says DELETED of an object whose label somebody has removed. Before a job is told to stop for that, or
its end is told to nobody, the API server is asked for its Workload by name, which nobody can change; what is found
counts, and gets its label back. As long as it has none, each look asks anew: nothing else tells of an eviction.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from dtjob import times
from dtjob.api.job import GROUP
from dtjob.objects import kueue, labels, shared
from dtjob.plan.actions import Delete, Event, PatchWorkload
from dtjob.plan.queueing.step import Queueing
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import Kueue, Workload

LABELLED_AT = f"{GROUP}/labelled-at"
"""On a Workload, an annotation: when its labels were last restored."""
LEFT_ALONE = timedelta(minutes=1)
"""For so long they are not restored again: others may want it otherwise, such as an admission webhook."""
ASKED_AGAIN = timedelta(seconds=10)
"""After this it is asked for meanwhile."""


def looked_for(situation: Situation) -> tuple[Situation, Workload | None]:
    """The situation with the Workload that its place in the queue names, where it is not seen and was found; and that
    one, None if nothing was looked for or there is none of ours any more. Raises Unread.

    A job that has ended names none any more that is gone or over: nobody asks for it again.
    """
    job, children, status = situation.group_job, situation.children, situation.status
    if status.queue is None or not _is_unseen(situation, status.queue.workload):
        return situation, None
    key = kueue.KIND, status.queue.workload
    (read,) = children.found(key)
    workload = Workload(read) if read and labels.controller_uid(read) == job.metadata.uid else None
    # What is held of it, as an answer to a call of ours left it, is known no better than what was read.
    others = tuple(one for one in children.objects if (one["kind"], one["metadata"]["name"]) != key)
    if workload and not (workload.is_going or (status.ended and workload.finished)):
        seen = replace(children, objects=(*others, workload.manifest))
        return replace(situation, children=seen), workload
    situation = replace(situation, children=replace(children, objects=others))
    if status.ended:
        situation = situation.with_status(status.but(queue=status.queue.but(workload="")))
    return situation, None


def _is_unseen(situation: Situation, name: str) -> bool:
    """Whether the Workload of this name may be there without being seen. One whose place another has taken is over."""
    if not name or situation.children.kueue is not Kueue.THERE:
        return False
    owned = situation.children.owned(situation.group_job, (kueue.KIND,))
    seen = [Workload(one) for one in owned if labels.JOB_NAME in labels.of(one)]
    return not any(one.name == name or (one.in_force and one.replaces == name) for one in seen)


def labelled(situation: Situation, workload: Workload, queued: Queueing) -> Queueing:
    """What the queue asks for, with the labels that this Workload is to have. What else is to be said to it comes
    first: whoever does not let its labels back holds up nothing else."""
    if any(isinstance(one, PatchWorkload | Delete) and one.uid == workload.uid for one in queued.actions):
        return queued
    now, until = situation.now, _left_alone_until(situation, workload)
    if until is not None:
        due = min(one for one in (until, now + ASKED_AGAIN, queued.look_again_at) if one is not None)
        return replace(queued, look_again_at=due)
    metadata = shared.owned_metadata(
        situation.group_job, workload.name, {kueue.JOB_UID: situation.group_job.metadata.uid}
    )
    body = {"metadata": {"labels": metadata["labels"], "annotations": {LABELLED_AT: times.rfc3339(now)}}}
    version = workload.manifest["metadata"]["resourceVersion"]
    patch = PatchWorkload(workload.name, workload.uid, version, body, False, "its labels were taken away")
    said = f"Somebody removed the label {labels.JOB_NAME}, by which dtjob finds Workload {workload.name}; restored"
    event = Event("Warning", "LabelsRestored", said)
    return replace(queued, actions=(*queued.actions, patch), events=(*queued.events, event))


def _left_alone_until(situation: Situation, workload: Workload) -> datetime | None:
    """Until when the labels are not restored; None: they may be now."""
    text = (workload.manifest["metadata"].get("annotations") or {}).get(LABELLED_AT, "")
    try:
        labelled_at = times.parse(text)
        alone = timedelta() <= situation.now - labelled_at < LEFT_ALONE
    except (TypeError, ValueError):  # somebody else wrote it
        return None
    return labelled_at + LEFT_ALONE if alone else None
