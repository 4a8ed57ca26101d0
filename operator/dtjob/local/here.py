# SPDX-License-Identifier: Apache-2.0
"""A job as one run on this machine has it. Pure."""

import sys

from dtjob.api.job import API_VERSION, KIND, CleanPodPolicy, Job
from dtjob.api.status.activity import Activity
from dtjob.api.words import counted
from dtjob.objects import kueue
from dtjob.objects.defaults import Defaults
from dtjob.objects.manifest import Manifest
from dtjob.plan.record.failure import Cause

_REASONS_HERE = (Cause.STALLED, Cause.ERROR)
"""Reasons with which processes end. All others are of pods and containers."""

DEFAULTS = Defaults(
    image=sys.executable,
    directories_stay=True,
    again="run the command again",
    anew="run the command with --fresh",
)
"""A job needs no image here: this Python stands for it; and no volume for its checkpoints."""


def job_here(job: Job, uid: str, before: Activity | None = None) -> Job:
    """The job as one run on this machine has it. `before` is how long it was active in the starts of this run before.

    What `left_aside` names is left out. The cleanPodPolicy is never None: files and logs stay anyway. A run lasts until
    its last process has ended, and processes that only serve would never end.
    """
    scheduling = job.spec.scheduling.model_copy(update={"gang": None, "topology": None})
    here: dict[str, object] = {"scheduling": scheduling, "suspend": False, "managed_by": None}
    here["ttl_seconds_after_finished"] = None
    if job.spec.clean_pod_policy is CleanPodPolicy.NONE:
        here["clean_pod_policy"] = CleanPodPolicy.RUNNING
    spec = job.spec.model_copy(update=here)
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
    program = job.spec.program
    if program and program.source:
        theirs = "the ConfigMap's" if program.source.config_map else "that of the volume"
        found.append(f"spec.program.source: {program.entrypoint} of this directory runs here, not {theirs}")
    if program and program.requirements:
        found.append("spec.program.requirements: nothing is installed here; the packages of this Python are used")
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


def rules_left_aside(job: Job) -> list[str]:
    """The failure rules whose criteria only pods have, by their field: reasons and conditions. Nothing here matches."""
    found = []
    for index, rule in enumerate(job.spec.failure_policy.rules):
        name = f"failurePolicy.rules[{index}]"
        if any(reason not in _REASONS_HERE for reason in rule.on_reasons or ()):
            found.append(f"{name}.onReasons")
        if rule.on_pod_conditions is not None:
            found.append(f"{name}.onPodConditions")
    return found


def manifest_of(job: Job) -> Manifest:
    """The job as an API server would store it."""
    dumped = job.model_dump(mode="json", by_alias=True, exclude_unset=True)
    metadata = {**dumped["metadata"], "namespace": job.metadata.namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": dumped["spec"], "status": job.status}
