# SPDX-License-Identifier: Apache-2.0
"""Data workers (tf.data service): their pods, made and replaced each by itself while the job trains.

No task of the training waits for a certain data worker. So nothing of them is remembered or counted: what is to be
done follows from their pods alone, as for a ReplicaSet. A pod that failed, is lost or is being deleted gets a
successor, which waits for the backoff of the job. `replicaSpecs.data.replicas` may change at any time.
"""

from collections.abc import Sequence

from dtjob.api.spec.replica_specs import Role
from dtjob.api.words import counted
from dtjob.objects import topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Action, Delete
from dtjob.plan.failure.budget import wait_before
from dtjob.plan.failure.cause import failure_of
from dtjob.plan.kueue import COUNT
from dtjob.plan.pods import create_pod, retire
from dtjob.plan.seen.children import (
    PodState,
    TaskView,
    created_at,
    deleting,
    facts_of,
    is_of_data_worker,
    replica_statuses,
)
from dtjob.plan.seen.situation import Draft, Situation

RESTARTING = "DataWorkerRestarting"
"""The reason of the event about one that has failed."""


def views_of(situation: Situation) -> list[TaskView]:
    """The data workers that there are to be, each at its newest attempt."""
    queue, found = situation.status.queue, []
    most = queue.pod_sets.get(Role.DATA.value, {}).get(COUNT) if queue else None
    by_task: dict[str, list[Manifest]] = {}
    for pod in pods_of(situation):
        by_task.setdefault(facts_of(pod).task_id or "", []).append(pod)
    for task in topology.data_tasks(situation.group_job)[:most]:
        pods = tuple(by_task.get(task.id, ()))
        attempt = max(map(topology.attempt_of, pods), default=0)
        found.append(TaskView.of(task, attempt, pods, situation.now, supervised=True))
    return found


def pods_of(situation: Situation) -> list[Manifest]:
    """The pods of all data workers, of any attempt."""
    job = situation.group_job
    if job.spec.replica_specs.data is None:  # jobs of thousands of pods mostly have none
        return []
    return [pod for pod in situation.children.owned_pods(job) if is_of_data_worker(pod)]


def keep(draft: Draft, views: Sequence[TaskView]) -> None:
    """Make the pods of data workers that are missing, replace those that have failed, and delete those that are too
    many. Pods of the training come first, since a quota may not have room for all."""
    situation = draft.situation
    if any(view.state is PodState.MISSING for view in situation.views):
        return
    wanted = {view.task.id for view in views}
    why = f"the job is to have {counted(len(views), 'data worker')}"  # in a queue perhaps fewer than the spec says
    surplus = (pod for pod in pods_of(situation) if facts_of(pod).task_id not in wanted)
    draft.do(Delete.of(pod, why, surplus=True) for pod in surplus if not deleting(pod))
    for view in views:
        draft.do(_replaced(draft, view))
    draft.look_again(*(facts_of(pod).lost_at for view in views for pod in view.pods))


def count(draft: Draft, views: Sequence[TaskView]) -> None:
    """Write how many data workers there are, by state, beside the tasks of the training."""
    draft.status = draft.status.but(replica_statuses={**draft.status.replica_statuses, **replica_statuses(views)})


def _replaced(draft: Draft, view: TaskView) -> list[Action]:
    """What is to be done about one of them."""
    situation, pod = draft.situation, view.pod
    if pod is not None:
        if view.state in (PodState.PENDING, PodState.RUNNING) and not deleting(pod):
            return retire(view)
        due = created_at(pod) + wait_before(view.attempt + 1, situation.group_job.spec.failure_policy.backoff)
        if situation.now < due:
            draft.look_again(due)
            return retire(view)
        if (failure := failure_of(view, situation.now)) is not None:
            draft.add_event("Warning", RESTARTING, f"{failure.sentence()}; another one takes its place")
        view = view._replace(attempt=view.attempt + 1, pod=None, state=PodState.MISSING)
    return [*retire(view), create_pod(situation, view, None)]
