# SPDX-License-Identifier: Apache-2.0
"""Gang: a job with a gang has its PodGroup before its pods, and as long as it has pods.

A suspended or ended job gives it up, as a PodGroup may hold a queue's room by itself, and begins with a new one. A pod
that replaces another joins the gang. The others are bound, so it is bound as soon as there is a node for it. The
PodGroup does not count finished tasks.
"""

from dtjob.api.status.placement import Gang
from dtjob.objects import drift, gangs, topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create, Delete, Repair
from dtjob.plan.draft import Draft
from dtjob.plan.seen.children import PodState, TaskView, deleting, node_of
from dtjob.plan.seen.situation import Situation

REPLACED = "PodGroupReplaced"
"""The reason of the event about templates that name another gang."""
_WAITING = (PodState.MISSING, PodState.PENDING)


def note_gang(draft: Draft) -> None:
    """Say in the status whose gang it is: that of the provider that it began with. The event is for a job that begins
    and whose templates name another gang."""
    job, status = draft.situation.group_job, draft.status
    provider = gangs.provider_of(job, draft.situation.defaults)
    if provider is None:
        draft.status = status if status.gang is None else status.but(gang=None)
        return
    gang = status.gang or Gang(provider=provider.value, min_available=0)
    said = gang.but(provider=provider.value, min_available=gangs.min_available(job))
    if status.gang == said:
        return
    if status.gang is None:
        _tell_overruled(draft)
    draft.status = status.but(gang=said)


def _tell_overruled(draft: Draft) -> None:
    job = draft.situation.group_job
    overruled = gangs.overruled(job, draft.situation.defaults)
    if not overruled:
        return
    own = f"scheduling.gang replaces it by the job's own, PodGroup {job.metadata.name}"
    advice = "Remove these fields, or remove scheduling.gang to use your own group"
    draft.add_event("Warning", REPLACED, f"{', '.join(overruled)}: {own}. {advice}")


def keep_gang(situation: Situation) -> list[Create | Repair]:
    """What is to be made before the pods, or put right while some of them wait for a node."""
    there = _group(situation)
    if there is not None and not deleting(there) and all(view.state not in _WAITING for view in situation.training):
        return []
    wanted = gangs.pod_group(situation.group_job, situation.defaults, at_most=_unfinished(situation))
    if wanted is None:
        return []
    if there is None or deleting(there):
        return [Create.of(wanted)]
    field = drift.drifted(wanted, there)
    return [Repair(wanted, there, field)] if field else []


def waits_for_the_chief(situation: Situation, view: TaskView) -> bool:
    """Whether an evaluator that goes to the chief's node is not to be made yet, as the chief's pod has none.

    A scheduler takes a pod that it holds for its gang as bound. It would bind the evaluator beside a chief that is
    released again and ends up elsewhere (seen with Coscheduling).
    """
    job, chief = situation.group_job, situation.chief
    if job.spec.scheduling.gang is None or not view.evaluates or not topology.evaluator_follows_chief(job):
        return False
    return chief.state in _WAITING and (chief.pod is None or not node_of(chief.pod))


def release_gang(situation: Situation) -> list[Delete]:
    """The PodGroups of a job that is to have no pods now."""
    why = "the job has no pods to bind"
    return [Delete.of(one, why) for one in _groups(situation) if not deleting(one)]


def _unfinished(situation: Situation) -> int:
    return sum(view.state is not PodState.SUCCEEDED for view in situation.training)


def _groups(situation: Situation) -> list[Manifest]:
    """The job's own PodGroups, as last seen."""
    return situation.children.owned(situation.group_job, gangs.PROVIDERS)


def _group(situation: Situation) -> Manifest | None:
    """The PodGroup of the job's provider."""
    provider = gangs.provider_of(situation.group_job, situation.defaults)
    return next((one for one in _groups(situation) if gangs.PROVIDERS[one["kind"]] is provider), None)
