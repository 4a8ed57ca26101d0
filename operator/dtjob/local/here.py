"""A job as one run on this machine has it. Pure."""

from __future__ import annotations

import sys

from dtjob.api.failure_rules import FailureRule, OnPodCondition
from dtjob.api.job import API_VERSION, KIND, Job
from dtjob.api.run_policy import CleanPods
from dtjob.objects.defaults import Defaults
from dtjob.objects.manifest import Manifest

_OF_NO_PROCESS = "OfNoProcess"
"""A reason and a condition that nothing here has."""

DEFAULTS = Defaults(image=sys.executable, directories_stay=True)
"""A job needs no image here: this Python stands for it; and no volume for its checkpoints."""


def job_here(job: Job, uid: str) -> Job:
    """The job as one run on this machine has it.

    Its cleanPods is never None: files and logs stay anyway, and no process stays after the run, which would wait for
    ever for those that only serve. Its rules on what only pods have match nothing, and keep their places.
    """
    spec = job.spec
    if spec.run_policy.clean_pods is CleanPods.NONE:
        run_policy = spec.run_policy.model_copy(update={"clean_pods": CleanPods.RUNNING})
        spec = spec.model_copy(update={"run_policy": run_policy})
    if spec.failure_policy.rules:
        rules = [_rule_here(rule) for rule in spec.failure_policy.rules]
        failure_policy = spec.failure_policy.model_copy(update={"rules": rules})
        spec = spec.model_copy(update={"failure_policy": failure_policy})
    metadata = job.metadata.model_copy(update={"uid": uid, "generation": 1})
    return job.model_copy(update={"metadata": metadata, "spec": spec, "status": {}})


def rules_left_aside(job: Job) -> list[str]:
    """The failure rules whose criteria only pods have, by their field: reasons and conditions."""
    rules = enumerate(job.spec.failure_policy.rules)
    named = ((f"failurePolicy.rules[{index}]", rule) for index, rule in rules)
    return [
        f"{name}.{'onReasons' if rule.on_reasons is not None else 'onPodConditions'}"
        for name, rule in named
        if rule.on_reasons is not None or rule.on_pod_conditions is not None
    ]


def _rule_here(rule: FailureRule) -> FailureRule:
    if rule.on_reasons is not None:
        return rule.model_copy(update={"on_reasons": [_OF_NO_PROCESS]})
    if rule.on_pod_conditions is not None:
        return rule.model_copy(update={"on_pod_conditions": [OnPodCondition(type=_OF_NO_PROCESS)]})
    return rule


def manifest_of(job: Job) -> Manifest:
    """The job as an API server would store it."""
    dumped = job.model_dump(mode="json", by_alias=True, exclude_unset=True)
    metadata = {**dumped["metadata"], "namespace": job.metadata.namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": dumped["spec"], "status": {}}
