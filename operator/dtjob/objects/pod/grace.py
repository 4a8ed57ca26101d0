# SPDX-License-Identifier: Apache-2.0
"""The time from a pod's deletion to SIGKILL, one number for the pod, its supervisor and `dtjob run`.

A preStop hook of the training container takes its time from it: the kubelet sends SIGTERM only when the hook has ended.
The seconds of `preStop.sleep` are known, and what no template says otherwise is longer by them. (Other hooks are
refused where there is something to save.) What `kubectl delete --grace-period` asks for is known to the kubelet alone.
"""

from dtjob.api.job import Job
from dtjob.objects.topology import Task

WITHOUT_CHECKPOINTS = 30
"""Kubernetes' default terminationGracePeriodSeconds: there is nothing to save."""
LEAST = 2
"""Seconds that a kubelet leaves after SIGTERM, however long the hook took."""


def pod_seconds(job: Job, task: Task) -> int:
    """The terminationGracePeriodSeconds of the task's pod: its template's, else the time to save and to sleep."""
    replica = job.spec.replica_specs.get(task.role)
    given = replica.pod_spec.termination_grace_period_seconds if replica else None
    if given is not None:
        return given
    time_to_save = job.spec.checkpoint.save_timeout_seconds if job.spec.checkpoint else WITHOUT_CHECKPOINTS
    return time_to_save + _slept(job, task)


def seconds_after_sigterm(job: Job, task: Task) -> int:
    """What is left of that when the training container gets SIGTERM."""
    whole, slept = pod_seconds(job, task), _slept(job, task)
    return max(whole - slept, LEAST) if slept else whole


def _slept(job: Job, task: Task) -> int:
    """Seconds that the training container's preStop hook sleeps."""
    replica = job.spec.replica_specs.get(task.role)
    lifecycle = replica.training.lifecycle if replica else None
    hook = lifecycle.pre_stop if lifecycle else None
    return hook.sleep.seconds if hook and hook.sleep else 0
