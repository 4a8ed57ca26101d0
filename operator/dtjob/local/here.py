"""A job as one run on this machine has it. Pure."""

from __future__ import annotations

import sys

from dtjob.api.job import API_VERSION, KIND, Job
from dtjob.api.run_policy import CleanPods
from dtjob.objects.defaults import Defaults
from dtjob.objects.manifest import Manifest

DEFAULTS = Defaults(image=sys.executable, directories_stay=True)
"""A job needs no image here: this Python stands for it; and no volume for its checkpoints."""


def job_here(job: Job, uid: str) -> Job:
    """The job as one run on this machine has it.

    Its cleanPods is never None: files and logs stay anyway, and no process stays after the run, which would wait for
    ever for those that only serve.
    """
    spec = job.spec
    if spec.run_policy.clean_pods is CleanPods.NONE:
        run_policy = spec.run_policy.model_copy(update={"clean_pods": CleanPods.RUNNING})
        spec = spec.model_copy(update={"run_policy": run_policy})
    metadata = job.metadata.model_copy(update={"uid": uid, "generation": 1})
    return job.model_copy(update={"metadata": metadata, "spec": spec, "status": {}})


def manifest_of(job: Job) -> Manifest:
    """The job as an API server would store it."""
    dumped = job.model_dump(mode="json", by_alias=True, exclude_unset=True)
    metadata = {**dumped["metadata"], "namespace": job.metadata.namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": dumped["spec"], "status": {}}
