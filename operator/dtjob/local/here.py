# SPDX-License-Identifier: Apache-2.0
"""A job as one run on this machine has it. Pure."""

import sys

from dtjob.api.counted import counted
from dtjob.api.job import API_VERSION, KIND, CleanPodPolicy, Job
from dtjob.api.spec.failure_rules import FailureRule, OnPodCondition
from dtjob.api.status.activity import Activity
from dtjob.objects import kueue
from dtjob.objects.defaults import Defaults
from dtjob.objects.manifest import Manifest
from dtjob.plan.record.failure import Cause

_OF_NO_PROCESS = "OfNoProcess"
"""A reason and a condition that nothing here has."""

DEFAULTS = Defaults(
    image=sys.executable,
    directories_stay=True,
    again="run the command again",
    anew="run the command with --fresh",
)
"""A job needs no image here: this Python stands for it; and no volume for its checkpoints."""


def job_here(job: Job, uid: str, before: Activity | None = None) -> Job:
    """The job as one run on this machine has it. `before` is how long it was active in the starts of this run before.

    Its cleanPodPolicy is never None: files and logs stay anyway, and no process stays after the run, which would wait
    for ever for those that only serve. What `left_aside` names is left out. Its rules on what only pods have match
    nothing, and keep their places.
    """
    scheduling = job.spec.scheduling.model_copy(update={"gang": None, "topology": None})
    here: dict[str, object] = {"scheduling": scheduling, "suspend": False, "managed_by": None}
    here["ttl_seconds_after_finished"] = None
    if job.spec.clean_pod_policy is CleanPodPolicy.NONE:
        here["clean_pod_policy"] = CleanPodPolicy.RUNNING
    spec = job.spec.model_copy(update=here)
    if spec.failure_policy.rules:
        rules = [_rule_here(rule) for rule in spec.failure_policy.rules]
        failure_policy = spec.failure_policy.model_copy(update={"rules": rules})
        spec = spec.model_copy(update={"failure_policy": failure_policy})
    metadata = job.metadata.model_copy(update={"uid": uid, "generation": 1})
    status = {"active": before.to_json()} if before else {}
    return job.model_copy(update={"metadata": metadata, "spec": spec, "status": status})


def left_aside(job: Job) -> list[str]:
    """The fields and labels of the job that mean nothing to a run on this machine, with the reason."""
    found = []
    if job.spec.suspend:
        found.append("spec.suspend: the job trains here; Ctrl-C has it save and end, and the same command resumes it")
    if not job.spec.is_ours:
        found.append(f"spec.managedBy: {job.spec.managed_by} runs no jobs here")
    found += _of_the_program_left_aside(job)
    worker = job.spec.replica_specs.worker
    if worker is not None and job.spec.elastic_policy is not None:
        more = "to change that, start it again with another number of replicas; it continues from its checkpoint"
        found.append(f"spec.elasticPolicy: the job trains with {counted(worker.replicas, 'worker')} here; {more}")
    if queue := kueue.queue_of(job):
        found.append(f"label {kueue.QUEUE}: {queue} admits no jobs here; the job trains at once")
    for name in ("gang", "topology"):
        if getattr(job.spec.scheduling, name) is not None:
            found.append(f"spec.scheduling.{name}: all processes are on this machine")
    if job.spec.ttl_seconds_after_finished is not None:
        found.append("spec.ttlSecondsAfterFinished: a run's files stay until you delete them")
    return found


def _of_the_program_left_aside(job: Job) -> list[str]:
    """What of the program a cluster would bring."""
    found, program = [], job.spec.program
    if program and program.source:
        theirs = "the ConfigMap's" if program.source.config_map else "that of the volume"
        found.append(f"spec.program.source: {program.entrypoint} of this directory runs here, not {theirs}")
    if program and program.requirements:
        found.append("spec.program.requirements: nothing is installed here; the packages of this Python are used")
    return found


def rules_left_aside(job: Job) -> list[str]:
    """The failure rules whose criteria only pods have, by their field: reasons and conditions."""
    found = []
    for index, rule in enumerate(job.spec.failure_policy.rules):
        name = f"failurePolicy.rules[{index}]"
        if _reasons_of_pods(rule):
            found.append(f"{name}.onReasons")
        if rule.on_pod_conditions is not None:
            found.append(f"{name}.onPodConditions")
    return found


def _reasons_of_pods(rule: FailureRule) -> bool:
    return any(reason != Cause.STALLED for reason in rule.on_reasons or ())


def _rule_here(rule: FailureRule) -> FailureRule:
    if rule.on_reasons is not None:
        of_processes = [reason for reason in rule.on_reasons if reason == Cause.STALLED]
        return rule.model_copy(update={"on_reasons": of_processes or [_OF_NO_PROCESS]})
    if rule.on_pod_conditions is not None:
        return rule.model_copy(update={"on_pod_conditions": [OnPodCondition(type=_OF_NO_PROCESS)]})
    return rule


def manifest_of(job: Job) -> Manifest:
    """The job as an API server would store it."""
    dumped = job.model_dump(mode="json", by_alias=True, exclude_unset=True)
    metadata = {**dumped["metadata"], "namespace": job.metadata.namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": dumped["spec"], "status": job.status}
