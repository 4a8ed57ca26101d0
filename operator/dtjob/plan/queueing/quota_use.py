# SPDX-License-Identifier: Apache-2.0
"""Which pods of a job use the quota that it has in a queue of Kueue, and which tasks need none any more."""

from collections.abc import Mapping
from datetime import datetime

from dtjob.api.spec.strategy import Strategy
from dtjob.objects.manifest import Manifest
from dtjob.plan.elastic.room import placeholders
from dtjob.plan.lifetime.last_evaluation import evaluator_left
from dtjob.plan.seen.children import PodState, ended, is_lost
from dtjob.plan.seen.pod_facts import facts_of
from dtjob.plan.seen.situation import Situation


def pods_left(situation: Situation) -> list[Manifest]:
    """The pods that use what the job has: those that have not ended, placeholders too. One that is lost with its node
    counts no more."""
    pods = [pod for view in situation.views for pod in view.pods]
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
    for view in situation.views:
        finished = view.state is PodState.SUCCEEDED and not (together and not job_ended and not view.evaluates)
        if all(ended(pod) for pod in view.pods) and (finished or (job_ended and view is not evaluator_left(situation))):
            found[view.task.role.value] = found.get(view.task.role.value, 0) + 1
    return found
