# SPDX-License-Identifier: Apache-2.0
"""Workloads that the watch does not show any more, and which may still hold quota.

A watch by label says DELETED of an object whose label somebody has removed. Before a job is told to stop for that, or
its end is told to nobody, the API server is asked for its Workload by name, which nobody can change; what is found
counts, and gets its label back. As long as it has none, each look asks anew: nothing else tells of an eviction. It is
looked at again when its labels may be restored again.
"""

from __future__ import annotations

from dataclasses import replace

from dtjob.objects import kueue, labels, shared
from dtjob.plan.actions import Delete, PatchWorkload
from dtjob.plan.draft import Draft
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import Kueue, Workload


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


def restore_labels(draft: Draft, workload: Workload) -> None:
    """Give this Workload the labels that it is to have. What else is to be said to it comes first: whoever does not let
    its labels back holds up nothing else."""
    if any(isinstance(one, PatchWorkload | Delete) and one.uid == workload.uid for one in draft.actions):
        return
    job = draft.situation.group_job
    metadata = shared.owned_metadata(job, workload.name, {kueue.JOB_UID: job.metadata.uid})
    draft.do([workload.label(metadata["labels"])])
    said = f"Somebody removed the label {labels.JOB_NAME}, by which dtjob finds Workload {workload.name}; restored"
    draft.add_event("Warning", "LabelsRestored", said)
