# SPDX-License-Identifier: Apache-2.0
"""Cleanup: which pods are deleted when the job has ended, and when the job itself is."""

from __future__ import annotations

from datetime import datetime, timedelta

from dtjob.api.job import KIND, Job
from dtjob.api.phase import Phase
from dtjob.api.spec.clean_pod_policy import CleanPodPolicy
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.plan.actions import Delete
from dtjob.plan.elastic.resize import strays
from dtjob.plan.lifetime.deadlines import ended_by_deadline
from dtjob.plan.lifetime.last_evaluation import evaluator_left
from dtjob.plan.seen.children import TaskView, deleting, ended, kept_by_sidecar
from dtjob.plan.seen.situation import LOOK_AT_LEAST_EVERY, Situation

LINGER = timedelta(seconds=60)
"""Time to end by themselves: MultiWorkerMirrored tasks finish up to 25 s apart."""


def pods_to_remove(situation: Situation) -> tuple[list[Delete], datetime | None]:
    """The pods that an ended job gives up now, and when to look again for those that may still end by themselves."""
    gone = strays(situation)
    policy, ended_at = situation.group_job.spec.clean_pod_policy, situation.status.completion_time
    # What a deadline has cut off must not run on: of its pods None keeps those that have ended.
    if ended_at is None or (policy is CleanPodPolicy.NONE and not ended_by_deadline(situation.status)):
        return gone, None
    linger_until = ended_at + LINGER
    removed, waits = gone, False
    evaluator = evaluator_left(situation)
    for view in situation.views:
        if view is evaluator:
            continue
        for pod in view.pods:
            # A sidecar would keep a pod for ever whose training has ended.
            if deleting(pod) or (ended(pod) and not kept_by_sidecar(pod) and policy is not CleanPodPolicy.ALL):
                continue
            lingers = situation.status.phase is Phase.SUCCEEDED and not ended(pod) and situation.now < linger_until
            if lingers and _ends_by_itself(situation.group_job, view):
                waits = True
                continue
            removed.append(Delete.of(pod, f"the job has ended (cleanPodPolicy: {policy.value})"))
    return removed, linger_until if waits else None


def _ends_by_itself(job: Job, view: TaskView) -> bool:
    if view.evaluates or job.spec.strategy is not Strategy.PARAMETER_SERVER:
        return True
    # Workers that no chief hands its steps to train by themselves, each to its own end.
    return view.task.role is Role.WORKER and job.spec.replica_specs.chief is None


def deletion(situation: Situation, lingers: bool) -> tuple[list[Delete], datetime | None]:
    """The deletion of the job if its time has come, and else when to look again.

    `lingers`: some of its pods may still end by themselves, and are waited for. An evaluator that has the last
    checkpoint to evaluate is waited for, too.
    """
    status, metadata = situation.status, situation.group_job.metadata
    spec, ended_at = situation.group_job.spec, status.completion_time
    failed = status.phase is Phase.FAILED and spec.ttl_seconds_after_failed is not None
    seconds = spec.ttl_seconds_after_failed if failed else spec.ttl_seconds_after_finished
    if seconds is None or ended_at is None or lingers or evaluator_left(situation) is not None:
        return [], None
    due = ended_at + timedelta(seconds=seconds)
    if situation.now < due:
        return [], min(due, situation.now + LOOK_AT_LEAST_EVERY)
    outcome = "failed" if status.phase is Phase.FAILED else "succeeded"
    field = "ttlSecondsAfterFailed" if failed else "ttlSecondsAfterFinished"
    why = f"it {outcome} {seconds} s ago ({field})"
    # The field may have been raised, or the job unsuspended, a moment ago: then it is planned for anew.
    return [Delete(KIND, metadata.name, metadata.uid, why, metadata.resource_version)], None
