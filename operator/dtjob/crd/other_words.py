"""Words of TFJob, of a batch/v1 Job and of JobSet in a dtjob manifest: what to write for them.

An API server says of each that the field is unknown; `dtjob validate` and `dtjob run` say this too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_CHIEF = "write chief"
_ROLES = {"Chief": _CHIEF, "Master": _CHIEF, "master": _CHIEF}
_ROLES |= {word: f"write {word.lower()}" for word in ("Worker", "PS", "Evaluator")}
_SCHEDULING = (
    "write scheduling.gang for its minAvailable and queue (docs/gangs.md), scheduling.priorityClassName for its "
    "priorityClass, runPolicy.startDeadlineSeconds for its scheduleTimeoutSeconds"
)

_MENDS: Mapping[str, str] = {
    "spec.tfReplicaSpecs": "write replicas, with the roles chief, worker, ps and evaluator",
    "spec.enableDynamicWorker": "write replicas.worker.min and replicas.worker.max (docs/elastic.md)",
    **{f"spec.replicas.{role}": mend for role, mend in _ROLES.items()},
    "spec.replicas.*.replicas": "write count",
    "spec.replicas.*.restartPolicy": "write rules with these roles into failurePolicy.rules (docs/failure-rules.md)",
    "spec.runPolicy.cleanPodPolicy": "write cleanPods",
    "spec.runPolicy.backoffLimit": "write failurePolicy.maxRestarts",
    "spec.runPolicy.suspend": "write it into spec: spec.suspend",
    "spec.runPolicy.managedBy": "write it into spec: spec.managedBy",
    "spec.runPolicy.schedulingPolicy": _SCHEDULING,
    "spec.backoffLimit": "write failurePolicy.maxRestarts",
    "spec.activeDeadlineSeconds": "write it into runPolicy: runPolicy.activeDeadlineSeconds",
    "spec.ttlSecondsAfterFinished": "write runPolicy.ttlSecondsAfterFinished, by outcome: {succeeded: 3600}",
    "spec.podFailurePolicy": "write failurePolicy.rules (docs/failure-rules.md)",
    "spec.parallelism": "write replicas.worker.count",
    "spec.completions": "write replicas.worker.count",
    "spec.template": "write it into a role: replicas.worker.template",
    "spec.replicatedJobs": "write replicas, with the roles chief, worker, ps and evaluator",
    "spec.failurePolicy.rules[].targetReplicatedJobs": "write roles",
    "spec.failurePolicy.rules[].onJobFailureReasons": "write onReasons, or another criterion: a rule is about pods",
    "spec.failurePolicy.rules[].onExitCodes.containerName": "remove it: the training container decides",
}


def instead(path: str) -> str | None:
    """What to write for the field at this dotted path; None where it is nobody's word that we know."""
    path = re.sub(r"\[\d+\]", "[]", path)
    return _MENDS.get(path) or _MENDS.get(re.sub(r"^(spec\.replicas)\.\w+\.", r"\1.*.", path))


def of_managed_by(managed_by: str | None) -> str:
    """What else to say of a job that names this controller, if it is one of TFJob's; else nothing."""
    if managed_by != "kubeflow.org/training-operator":
        return ""
    return f"spec.managedBy is {managed_by}, so dtjob leaves the job alone and says nothing of it: remove managedBy"


def of_kind(kind: object) -> str:
    """What else to say of a manifest of another kind."""
    return "; docs/tfjob.md shows how one is written" if kind == "TFJob" else ""
