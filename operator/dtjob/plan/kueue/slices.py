# SPDX-License-Identifier: Apache-2.0
"""The Workloads of one job: the current one, and the one that is to replace it when the job asks for more workers.

Kueue calls them slices of an elastic workload (v0.19, pkg/workloadslicing): when it admits the second, it finishes the
first in the same step, so that the job's pods have quota at every moment.
"""

from __future__ import annotations

from dataclasses import dataclass

from dtjob.api.spec.replica_specs import Role
from dtjob.objects import kueue
from dtjob.plan.seen.children import deleting
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import QUOTA_RESERVED, Workload


@dataclass(frozen=True)
class Slices:
    """See the module."""

    current: Workload | None
    successor: Workload | None = None
    """Asks for the place of the current one, and is not admitted yet."""
    others: tuple[Workload, ...] = ()
    """What is left of ours besides, and not being deleted: nothing needs it."""

    @property
    def covers(self) -> bool:
        """Whether the successor has the quota of the current one, which is over, and waits for admission checks."""
        return self.successor is not None and self.successor.in_force


def slices_of(situation: Situation) -> Slices:
    """The job's Workloads. One that was admitted in the place of that with which the job runs counts from then on."""
    entry = situation.status.queue
    found = [Workload(one) for one in situation.children.owned(situation.group_job, (kueue.KIND,))]
    if not found:
        return Slices(None)
    uid, name = (entry.uid, entry.workload) if entry else ("", "")
    found.sort(key=lambda one: (one.uid != uid, deleting(one.manifest), one.name != name, one.name))
    first = found[0]
    replaced = first.name if first.uid == uid or not uid else name
    successors = [one for one in found if replaced and one.replaces == replaced and not one.is_going]
    successor = successors[0] if successors else None
    if uid and successor is not None and successor.admitted:
        first, successor = successor, None
    kept = {one.uid for one in (first, successor) if one is not None}
    others = (one for one in found if one.uid not in kept and one.shape is not None and not one.is_going)
    return Slices(first, None if successor is first else successor, tuple(others))


def waiting_words(situation: Situation) -> str:
    """That a job that runs asks its queue for more workers, and what Kueue says about it; empty if it does not."""
    entry, successor = situation.status.queue, slices_of(situation).successor
    if entry is None or not entry.runs or successor is None:
        return ""
    words = f"{successor.asked(Role.WORKER.value)[0]} workers are asked for in queue {successor.queue}"
    said = successor.condition(QUOTA_RESERVED).get("message")
    return f"{words}; Kueue says: {said}" if said else words
