# SPDX-License-Identifier: Apache-2.0
"""The manifest as a whole."""

from copy import deepcopy

import pytest
from pydantic import ValidationError

from dtjob.api.job import Job, is_ours, stored_job
from tests.refusals import GOOD
from tests.refusals.good import EVERYTHING


@pytest.mark.parametrize("name", [name for name in GOOD if "empty" not in name])
def test_a_manifest_is_the_same_after_parsing(name: str) -> None:
    """Pods are made of what the user wrote: nothing may be lost, and nothing added."""
    job = Job.model_validate(GOOD[name])
    assert job.model_dump(mode="json", by_alias=True, exclude_unset=True) == GOOD[name]


def test_a_job_that_the_api_server_has_stored_is_read() -> None:
    metadata = {
        "name": "digits",
        "uid": "a",
        "resourceVersion": "7",
        "generation": 2,
        "managedFields": [{"manager": "x"}],
    }
    status = {"phase": "Running", "later": {"field": 1}}
    job = Job.model_validate({**GOOD["smallest"], "metadata": metadata, "status": status})
    assert (job.metadata.uid, job.metadata.resource_version, job.metadata.generation) == ("a", "7", 2)
    assert job.metadata.namespace == "default"
    assert job.status == status


@pytest.mark.parametrize(
    ("spec", "ours"),
    [
        ({}, True),
        ({"managedBy": None}, True),
        ({"managedBy": "training.dtjob.dev/dtjob-controller"}, True),
        ({"managedBy": "kueue.x-k8s.io/multikueue"}, False),
        ({"managedBy": ""}, False),
    ],
)
def test_a_job_is_ours_unless_it_names_another_controller(spec: dict[str, str], ours: bool):
    assert is_ours(spec) is ours


def test_unknown_fields_are_ignored_wherever_they_are() -> None:
    newer = deepcopy(EVERYTHING)
    newer["spec"]["later"] = {"a": 1}
    newer["spec"]["checkpoint"]["storage"]["later"] = 2
    newer["spec"]["failurePolicy"]["rules"] = [{"action": "FailJob", "onReasons": ["OOMKilled"], "later": [3]}]
    known = deepcopy(EVERYTHING)
    known["spec"]["failurePolicy"]["rules"] = [{"action": "FailJob", "onReasons": ["OOMKilled"]}]
    assert stored_job(newer) == stored_job(known)


def test_open_parts_of_a_template_are_kept() -> None:
    manifest = deepcopy(EVERYTHING)
    manifest["spec"]["later"] = 1
    manifest["spec"]["replicaSpecs"]["worker"]["template"]["spec"]["dnsPolicy"] = "Default"
    worker = stored_job(manifest).spec.replica_specs.worker
    assert worker is not None
    assert worker.template is not None
    assert worker.template.spec is not None
    assert worker.template.spec.model_extra == {"dnsPolicy": "Default"}


def test_a_wrong_value_of_a_known_field_is_an_error_all_the_same() -> None:
    manifest = deepcopy(EVERYTHING)
    manifest["spec"] |= {"later": 1, "strategy": "Unknown"}
    with pytest.raises(ValidationError, match="strategy"):
        stored_job(manifest)
