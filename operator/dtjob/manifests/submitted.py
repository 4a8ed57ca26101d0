# SPDX-License-Identifier: Apache-2.0
"""The job of a script for a cluster, as a manifest."""

import json
from dataclasses import dataclass
from typing import Any

from dtjob.api.quantity import is_quantity
from dtjob.bad_input import BadInput
from dtjob.crd.answers.problems import problems
from dtjob.manifests.package import Package, package
from dtjob.manifests.script import Submission
from dtjob.manifests.script_job import manifest
from dtjob.manifests.script_settings import said_of, with_settings

TEMPORARY = (
    "checkpoints end with the pod of the chief: a new pod begins at step 0, and nothing can be fetched. Give "
    "--claim-size 10Gi, --claim NAME or --checkpoint URI"
)


@dataclass(frozen=True)
class Made:
    """The objects of a submission, in the order of creation."""

    config_map: dict[str, Any]
    job: dict[str, Any]
    warnings: list[str]

    @property
    def name(self) -> str:
        """The name of the job."""
        return str(self.job["metadata"]["name"])


def made(submission: Submission) -> Made:
    """The objects. Raises BadInput with a line for each thing that is wrong."""
    _check_words(submission)
    _check_storage(submission)
    files = package(submission.script.file, submission.source, submission.requirements)
    job = _manifest(submission, files)
    name = str(job["metadata"]["name"])
    if found := problems(job):
        script = submission.script
        raise BadInput(*(said_of(problem, script.settings, str(script.file)) for problem in found))
    config_map = files.config_map(source_name(name), submission.namespace)
    warnings = [] if _keeps(submission) else [TEMPORARY]
    if submission.script.settings:
        from dtjob.manifests.warnings import said_in_vain  # its import takes a while

        warnings += said_in_vain(job)
    return Made(config_map, job, warnings)


def printed(one: Made, *, as_json: bool) -> str:
    """The objects for `--dry-run`."""
    objects = [one.config_map, one.job]
    if as_json:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n"
    from dtjob.manifests.manifest_yaml import written  # its import takes a while

    return written(objects)


def source_name(job: str) -> str:
    """The name of the ConfigMap with the files of a job."""
    return f"{job}-source"


def _keeps(submission: Submission) -> bool:
    """Whether the files of the job outlive its pods."""
    kept = (submission.claim, submission.claim_size, submission.script.checkpoint)
    return any(one is not None for one in kept)


def _check_words(submission: Submission) -> None:
    """Raise BadInput for an empty name, as a shell gives that of a variable without a value, or for one with blanks."""
    named = {"--claim": submission.claim, "--queue": submission.queue, "--image": submission.image}
    for option, value in named.items():
        if value is not None and value.split() != [value]:
            raise BadInput(f"{option}: {value!r} is no name; write one without blanks, or leave the option out")


def _check_storage(submission: Submission) -> None:
    checkpoint = submission.script.checkpoint
    if checkpoint is not None and "://" not in checkpoint:
        raise BadInput(
            f"--checkpoint: {checkpoint} is no URI such as gs://BUCKET/PATH; for a volume, give --claim NAME"
        )
    given = {"--claim-size": submission.claim_size, "--claim": submission.claim, "--checkpoint": checkpoint}
    options = [option for option, value in given.items() if value is not None]
    if len(options) > 1:
        raise BadInput(f"{options[0]}: give only one of {' and '.join(options)}")
    if submission.claim_size is not None and not is_quantity(submission.claim_size):
        raise BadInput(f"--claim-size: {submission.claim_size!r} is no size; write for example 10Gi")
    if submission.script.evaluator and not _keeps(submission):
        raise BadInput(
            "--evaluator: it reads the checkpoints of the chief; give --claim-size 10Gi, --claim NAME or --checkpoint "
            "URI"
        )


def _manifest(submission: Submission, files: Package) -> dict[str, Any]:
    found = manifest(submission.script, 0)
    spec = found["spec"]
    program = {"source": {"configMap": {"name": source_name(found["metadata"]["name"])}}, **spec.pop("program")}
    program["entrypoint"] = files.entrypoint
    if files.requirements:
        program["requirements"] = files.requirements
    if submission.claim:
        spec["checkpoint"]["storage"] = {"volume": {"persistentVolumeClaim": {"claimName": submission.claim}}}
    if submission.claim_size:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": submission.claim_size}}}
        spec["checkpoint"]["storage"] = {"volumeClaimTemplate": {"spec": claim}}
    if not _keeps(submission):
        del spec["tensorBoard"]  # nobody could read the events
    if submission.namespace:
        found["metadata"]["namespace"] = submission.namespace
    if submission.queue:
        from dtjob.objects.kueue import QUEUE  # its import takes a while

        found["metadata"]["labels"] = {QUEUE: submission.queue}
    image = {"image": submission.image} if submission.image else {}
    found["spec"] = {"strategy": spec.pop("strategy"), **image, "program": program, **spec}
    return with_settings(found, submission.script.settings)
