# SPDX-License-Identifier: Apache-2.0
"""Reading jobs that another version of the operator let in."""

from __future__ import annotations

from copy import deepcopy

import pytest
from pydantic import ValidationError

from dtjob.api.stored_job import stored_job
from tests.refusals.good import EVERYTHING


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
