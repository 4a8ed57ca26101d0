# SPDX-License-Identifier: Apache-2.0
"""Words of other APIs in a dtjob manifest, and what to write for them. They are those of TFJob, PyTorchJob, TrainJob,
Job, JobSet and RayJob.

An API server says of each that the field is unknown. `dtjob validate` and `dtjob run` say this too.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_SPECS = "write replicaSpecs, with the roles chief, worker, ps, data and evaluator"
_WORKERS = "write replicaSpecs.worker.replicas"
_RULES = "write failurePolicy.rules"
_OWN_RENDEZVOUS = "remove it: the trainer agrees on the start by itself"
_ORDER = "remove it: training starts when all tasks are up, in any order"
_CLAIM = "write checkpoint.storage.volumeClaimTemplate, one template"
_CLEAN = "write cleanPodPolicy for pods, or ttlSecondsAfterFinished for the job"

_ROLES: Mapping[str, str] = {
    **dict.fromkeys(("Chief", "Master", "master"), "write chief"),
    **{word: f"write {word.lower()}" for word in ("Worker", "PS", "Evaluator")},
}
_RUN_POLICY: Mapping[str, str] = {
    "spec.runPolicy": "write its fields in spec",
    **{
        f"spec.runPolicy.{name}": f"write {name} in spec"
        for name in (
            *("cleanPodPolicy", "activeDeadlineSeconds", "startDeadlineSeconds", "ttlSecondsAfterFinished"),
            *("suspend", "managedBy"),
        )
    },
    "spec.runPolicy.backoffLimit": "write failurePolicy.maxRestarts",
    "spec.runPolicy.schedulingPolicy": "write scheduling",
    "spec.runPolicy.schedulingPolicy.minAvailable": "write scheduling.gang: {}, which waits for all pods that train",
    "spec.runPolicy.schedulingPolicy.queue": "write scheduling.gang.volcano.queue",
    "spec.runPolicy.schedulingPolicy.priorityClass": "write scheduling.priorityClassName",
    "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds": "write startDeadlineSeconds in spec",
}
_ADVICE: Mapping[str, str] = {
    **_RUN_POLICY,
    # TFJob, PyTorchJob, TrainJob
    "spec.tfReplicaSpecs": _SPECS,
    "spec.pytorchReplicaSpecs": _SPECS,
    "spec.enableDynamicWorker": "write elasticPolicy",
    **{f"spec.replicaSpecs.{role}": advice for role, advice in _ROLES.items()},
    **{
        f"spec.replicaSpecs.{role}.replicas": f"remove it: there is always one {role}"
        for role in ("chief", "evaluator")
    },
    "spec.replicaSpecs.*.restartPolicy": f"{_RULES} with these roles",
    "spec.elasticPolicy.rdzvBackend": _OWN_RENDEZVOUS,
    "spec.elasticPolicy.maxRestarts": "write failurePolicy.maxRestarts",
    "spec.elasticPolicy.metrics": "create a HorizontalPodAutoscaler for the job's scale subresource",
    "spec.trainer": "write program, image and replicaSpecs",
    "spec.runtimeRef": "write strategy and replicaSpecs",
    # Job, HorizontalPodAutoscaler
    "spec.backoffLimit": "write failurePolicy.maxRestarts",
    "spec.restartPolicy": "remove it: dtjob replaces pods by itself, and failurePolicy says how often",
    "spec.podFailurePolicy": _RULES,
    "spec.parallelism": _WORKERS,
    "spec.completions": _WORKERS,
    "spec.template": "write it in a role: replicaSpecs.worker.template",
    "spec.minReplicas": "write elasticPolicy.minReplicas",
    "spec.maxReplicas": "write elasticPolicy.maxReplicas",
    # StatefulSet, a pod
    "spec.volumeClaimTemplates": _CLAIM,
    "spec.checkpoint.volumeClaimTemplate": _CLAIM,
    "spec.checkpoint.storage.volumeClaimTemplates": _CLAIM,
    "spec.checkpoint.storage.persistentVolumeClaim": "write it in checkpoint.storage.volume",
    **{
        f"spec.program.source.{volume}": "write it in program.source.volume"
        for volume in ("persistentVolumeClaim", "image", "csi")
    },
    # JobSet
    "spec.volumeClaimPolicies": _CLAIM,
    "spec.replicatedJobs": _SPECS,
    "spec.startupPolicy": _ORDER,
    "spec.coordinator": "write replicaSpecs.chief",
    "spec.failurePolicy.restartStrategy": "remove it: only tasks that failed get new pods",
    "spec.failurePolicy.rules[].targetReplicatedJobs": "write roles",
    "spec.failurePolicy.rules[].onJobFailureReasons": "write onReasons, or another criterion: a rule is about pods",
    "spec.failurePolicy.rules[].onExitCodes.containerName": "remove it: the training container decides",
    "spec.network.enableDNSHostnames": "remove it: each task always has a host name",
    # RayJob
    "spec.entrypoint": "write program.entrypoint",
    "spec.rayClusterSpec": _SPECS,
    "spec.runtimeEnvYAML": "install packages in the image, and write variables in program.env",
    "spec.preRunningDeadlineSeconds": "write startDeadlineSeconds",
    "spec.shutdownAfterJobFinishes": _CLEAN,
    "spec.deletionStrategy": _CLEAN,
}
_VALUES: Mapping[tuple[str, str], str] = {
    ("spec.failurePolicy.rules[].action", "Ignore"): (
        "write LeaveFailed to leave a failed evaluator alone, or RestartAndIgnoreMaxRestarts for what Ignore means in "
        "a Job"
    ),
    ("spec.failurePolicy.rules[].action", "RestartJobSetAndIgnoreMaxRestarts"): "write RestartAndIgnoreMaxRestarts",
    ("spec.failurePolicy.rules[].action", "RestartJobSet"): "write Restart",
    ("spec.failurePolicy.rules[].action", "Count"): "write Restart",
    ("spec.failurePolicy.rules[].action", "FailJobSet"): "write FailJob",
}


def instead(path: str) -> str | None:
    """What to write for the field at this dotted path; None if it is nobody's word that we know."""
    path = re.sub(r"\[\d+\]", "[]", path)
    return _ADVICE.get(path) or _ADVICE.get(re.sub(r"^spec\.replicaSpecs\.\w+(?=\.)", "spec.replicaSpecs.*", path))


def answers(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """What to write for the unknown field at this path, whose value is `value`. The answers are about the known fields
    in it, else about itself. There is none if no API that we know has the field."""
    inside = []
    if isinstance(value, Mapping):
        inside = [answer for name, item in value.items() for answer in answers(f"{path}.{name}", item)]
    advice = instead(path)
    if inside:
        yield from inside
    elif advice is not None:
        yield path, advice


def of_value(path: str, value: Any) -> str | None:
    """What to write for this value of a field; None if it is nobody's word that we know."""
    return _VALUES.get((re.sub(r"\[\d+\]", "[]", path), value)) if isinstance(value, str) else None


def of_managed_by(managed_by: str | None) -> str:
    """What else to say of a job that names this controller, if it is one of TFJob's; else nothing."""
    if managed_by != "kubeflow.org/training-operator":
        return ""
    return f"spec.managedBy is {managed_by}, so dtjob leaves the job alone and says nothing of it: remove managedBy"


def of_kind(kind: object) -> str:
    """What else to say of a manifest of another kind."""
    return "; `dtjob convert FILE` writes one from a TFJob" if kind == "TFJob" else ""
