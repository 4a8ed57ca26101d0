# SPDX-License-Identifier: Apache-2.0
"""The quota of a job in a queue: which pods use it, and how it changes with elastic workers.

Elastic workers in a queue: the number changes while the job runs, and training goes on with what was admitted.

To grow, a second Workload asks for all pods. When it is admitted, it replaces the first, and the group grows. To
shrink, the group drops workers. When they have ended, their quota is released. If the annotations of a Workload say so,
Kueue does each in one step (ElasticJobsViaWorkloadSlices, on by default). If that is off, there has to be quota for
both, and fewer workers queue anew.
"""

from collections.abc import Mapping
from datetime import datetime

from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.api.status.placement import QueueEntry
from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from dtjob.objects.placeholder import placeholder_name
from dtjob.plan.actions import Action, Create
from dtjob.plan.data_workers import pods_of, views_of
from dtjob.plan.elastic import placeholders
from dtjob.plan.kueue import COUNT, Conflict, Slices, pod_sets, priority, priority_changes, read_flavours
from dtjob.plan.lifetime.ending import evaluator_left
from dtjob.plan.seen.children import PodState, ended, facts_of, is_lost
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import Workload

WORKER = Role.WORKER.value


def only_resized(job: Job, workload: Workload) -> bool:
    """Whether the Workload fits this job except for the number of workers, and has enough for the job to go on. `job`
    is as its spec says."""
    replica, policy = job.spec.replica_specs.worker, job.spec.elastic_policy
    if workload.shape is None or replica is None or policy is None or workload.in_topology:
        return False
    least = workload.asked(WORKER)[1]
    if (policy.min_replicas or 1) > workload.counts().get(WORKER, 0) or replica.replicas < (least or 1):
        return False
    return kueue.same_but_workers(workload.shape, job)


def taken_over(situation: Situation, workload: Workload, entry: QueueEntry) -> QueueEntry:
    """The job's place when this Workload has taken over that of the one with which it runs. Its flavours are the same;
    admission checks may have added something. Raises Unread."""
    flavours, missing = read_flavours(situation, workload)
    try:
        sets = None if missing else pod_sets(situation.spec_job, workload, flavours)
    except Conflict:
        sets = None
    if sets is None:  # the group stays where it is
        sets = {name: dict(one) for name, one in entry.pod_sets.items()}
        sets[WORKER] = {**sets.get(WORKER, {}), COUNT: workload.counts().get(WORKER, 0)}
    return entry.admitted(workload.uid, workload.cluster_queue, sets)


def held(entry: QueueEntry, workload: Workload) -> QueueEntry:
    """The job's place, with no more workers than its Workload asks for. Those that were given back have to be admitted
    anew before there are as many again."""
    workers, (asked, _) = entry.pod_sets.get(WORKER, {}), workload.asked(WORKER)
    if workers.get(COUNT, 0) <= asked:
        return entry
    return entry.but(pod_sets={**entry.pod_sets, WORKER: {**workers, COUNT: asked}})


def asked_for(situation: Situation, slices: Slices) -> tuple[Action, ...]:
    """What a job that runs with the current Workload asks its queue for. Raises Unread."""
    current, successor, wanted = slices.current, slices.successor, situation.spec_job
    replica = wanted.spec.replica_specs.worker
    if current is None or replica is None or not current.in_force:
        return _without(successor)
    if current.shape in (None, kueue.shape_of(wanted)):  # somebody else's, or as it is to be
        return _without(successor)
    asked, _ = current.asked(WORKER)
    if replica.replicas > asked:
        return _more(situation, current, successor)
    gone = _without(successor)
    if replica.replicas < min(asked, current.counts()[WORKER]) and not gone and _has_ended_others(situation):
        (full,) = situation.children.found((kueue.KIND, current.name))
        if full is None or full["metadata"]["uid"] != current.uid:
            return ()
        return (current.lower(full, WORKER, replica.replicas, kueue.shape_of(wanted)),)
    return gone


def without_successor(situation: Situation, slices: Slices) -> tuple[Action, ...]:
    """Take away the one that asks for more, because the job does not run any more. If it has the quota already, it goes
    when no pod is left that uses it."""
    one = slices.successor
    if one is None or one.shape is None or (one.reserved and pods_left(situation)):
        return ()
    return (one.delete("the job does not run any more", as_seen=True),)


def _more(situation: Situation, current: Workload, successor: Workload | None) -> tuple[Action, ...]:
    """Ask for all of it beside what there is. It is written anew where it asks for another number."""
    wanted = situation.spec_job
    if kueue.queue_of(wanted) is None:  # it was taken away, which counts from the next suspension on
        return _without(successor)
    if successor is not None and (successor.reserved or successor.shape == kueue.shape_of(wanted)):
        return priority_changes(situation, successor)
    chosen, missing = priority(situation)
    if missing:
        return ()
    made = kueue.replacement(wanted, situation.defaults, chosen, current.name)
    made["spec"]["queueName"] = current.queue
    if successor is None:
        return (Create.of(made),)
    return (successor.ask_anew(made),)


def _has_ended_others(situation: Situation) -> bool:
    """Whether the group has no more workers than are wanted, and nothing is left of what looked for room for more."""
    workers = situation.status.workers
    if workers is None or workers.resizing is not None or workers.replicas > workers.desired:
        return False
    looks = {placeholder_name(situation.group_job, index) for index in range(workers.replicas, workers.desired)}
    left = (pod for pod in placeholders(situation) if not is_lost(pod, situation.now))
    return all(pod["metadata"]["name"] in looks for pod in left)


def _without(successor: Workload | None) -> tuple[Action, ...]:
    # With quota it is about to take over: then it is lowered.
    if successor is None or successor.reserved or successor.shape is None:
        return ()
    return (successor.delete("the job asks for no more than it has", as_seen=True),)


def pods_left(situation: Situation) -> list[Manifest]:
    """The pods that use what the job has: those that have not ended, placeholders too. One that is lost with its node
    counts no more."""
    pods = [*(pod for view in situation.views for pod in view.pods), *pods_of(situation)]
    return [pod for pod in (*pods, *placeholders(situation)) if not (ended(pod) or is_lost(pod, situation.now))]


def next_loss(situation: Situation) -> datetime | None:
    """When a pod that is left counts as lost though nothing happens."""
    return min((lost for pod in pods_left(situation) if (lost := facts_of(pod).lost_at)), default=None)


def reclaimable(situation: Situation) -> Mapping[str, int]:
    """How many tasks of each role need no pod any more: all that have ended, once the job has. Before that those that
    have done their part, but for tasks that a restart of the others needs again."""
    together = situation.group_job.spec.strategy is Strategy.MULTI_WORKER_MIRRORED
    job_ended = situation.status.ended
    found: dict[str, int] = {}
    for view in (*situation.views, *(views_of(situation) if job_ended else ())):
        finished = view.state is PodState.SUCCEEDED and not (together and not job_ended and not view.evaluates)
        if all(ended(pod) for pod in view.pods) and (finished or (job_ended and view is not evaluator_left(situation))):
            found[view.task.role.value] = found.get(view.task.role.value, 0) + 1
    return found
