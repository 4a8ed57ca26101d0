"""Cleanup: which pods go when the job has ended."""

from __future__ import annotations

from datetime import datetime, timedelta

from dtjob.api.job import Job
from dtjob.api.replicas import Role
from dtjob.api.run_policy import CleanPods
from dtjob.api.strategy import Strategy
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Delete
from dtjob.plan.children import PodState, TaskView, deleting, ended, kept_by_sidecar, state_of

LINGER = timedelta(seconds=60)
"""Time to end by themselves: MultiWorkerMirrored tasks finish up to 25 s apart."""


def pods_to_remove(
    job: Job, views: list[TaskView], success: bool, completed_at: datetime, now: datetime
) -> tuple[list[Delete], datetime | None]:
    """The pods that an ended job gives up now, and when to look again for those that may still end by themselves."""
    policy = job.spec.run_policy.clean_pods
    if policy is CleanPods.NONE:
        return [], None
    linger_until = completed_at + LINGER
    removed, waits = [], False
    for view in views:
        for pod in view.pods:
            # A sidecar keeps a pod whose training container has ended, and would keep it for ever.
            stays = ended(pod) and not kept_by_sidecar(pod)
            if deleting(pod) or (stays and policy is not CleanPods.ALL):
                continue
            if success and not ended(pod):
                if _evaluates(job, view, pod, now):
                    continue
                if _ends_by_itself(job, view) and now < linger_until:
                    waits = True
                    continue
            name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
            removed.append(Delete("Pod", name, uid, f"the job has ended (runPolicy.cleanPods: {policy.value})"))
    return removed, linger_until if waits else None


def _evaluates(job: Job, view: TaskView, pod: Manifest, now: datetime) -> bool:
    """Whether our evaluator is at work in this pod: it ends once it has done what the finished run has left it, however
    long that takes. Of an image without a supervisor nobody knows whether its evaluator ever ends."""
    is_evaluator = view.task.role is Role.EVALUATOR and job.spec.program is not None
    return is_evaluator and pod is view.pod and state_of(pod, now) is PodState.RUNNING


def _ends_by_itself(job: Job, view: TaskView) -> bool:
    return view.task.role is Role.EVALUATOR or job.spec.strategy is not Strategy.PARAMETER_SERVER
