# SPDX-License-Identifier: Apache-2.0
"""The time from a pod's deletion to SIGKILL, one number for the pod, its supervisor and `dtjob run`.

A preStop hook of the training container takes its time from it: the kubelet sends SIGTERM only when the hook has ended.
The seconds of `preStop.sleep` are known, and what no template says otherwise is longer by them. (Other hooks are
refused where there is something to save.) What `kubectl delete --grace-period` asks for is known to the kubelet alone.
"""

from dtjob.api.job import Job
from dtjob.api.spec.pod_template import TRAINING_CONTAINER, PodSpec
from dtjob.objects.topology import Task

WITHOUT_CHECKPOINTS = 30
"""Kubernetes' default terminationGracePeriodSeconds: there is nothing to save."""
LEAST = 2
"""Seconds that a kubelet leaves after SIGTERM, however long the hook took."""


def pod_seconds(job: Job, task: Task) -> int:
    """The terminationGracePeriodSeconds of the task's pod: its template's, else the time to save and to sleep."""
    template = _template(job, task)
    if template is not None and template.termination_grace_period_seconds is not None:
        return template.termination_grace_period_seconds
    time_to_save = job.spec.checkpoint.save_timeout_seconds if job.spec.checkpoint else WITHOUT_CHECKPOINTS
    return time_to_save + _slept(template)


def seconds_after_sigterm(job: Job, task: Task) -> int:
    """What is left of that when the training container gets SIGTERM."""
    whole, slept = pod_seconds(job, task), _slept(_template(job, task))
    return max(whole - slept, LEAST) if slept else whole


def _template(job: Job, task: Task) -> PodSpec | None:
    replica = job.spec.replica_specs.get(task.role)
    return replica.template.spec if replica and replica.template else None


def _slept(template: PodSpec | None) -> int:
    """Seconds that the training container's preStop hook sleeps."""
    for container in (template.containers if template else None) or ():
        hook = container.lifecycle.pre_stop if container.lifecycle else None
        if container.name == TRAINING_CONTAINER and hook and hook.sleep:
            return hook.sleep.seconds
    return 0
