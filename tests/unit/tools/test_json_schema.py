# SPDX-License-Identifier: Apache-2.0
"""The JSON schema for editors takes what an API server takes, as far as no rule in CEL decides."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from dtjob.api.job import KIND
from tests.refusals import GOOD, Bad
from tests.refusals.bounds import BOUNDS
from tests.refusals.fields import KINDS
from tests.refusals.manifests import job
from tests.refusals.other_words import OTHER_WORDS
from tools.json_schema import json_schema

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
BY_RULE = {"quantity-in-wrong-unit"}
"""Rows that a rule in CEL refuses."""
REFUSED = [row for row in (*BOUNDS, *KINDS, *OTHER_WORDS) if row.name not in BY_RULE]
SCHEMA = json_schema()
VALIDATOR = Draft7Validator(SCHEMA)


def complaints(manifest: Any) -> list[str]:
    """What is wrong with a manifest, as kubectl reads its YAML."""
    plain = json.loads(json.dumps(manifest, default=str))
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(plain)]


def test_the_json_schema_is_a_valid_schema_without_kubernetes_extensions() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert "x-kubernetes" not in json.dumps(SCHEMA)


@pytest.mark.parametrize("name", GOOD)
def test_good_manifests_are_accepted(name: str) -> None:
    assert complaints(GOOD[name]) == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_examples_are_accepted(file: Path) -> None:
    jobs = [one for one in yaml.safe_load_all(file.read_text()) if one["kind"] == KIND]
    assert jobs
    assert [complaints(one) for one in jobs] == [[] for _ in jobs]


@pytest.mark.parametrize("row", REFUSED, ids=[row.name for row in REFUSED])
def test_wrong_types_values_and_names_are_refused(row: Bad) -> None:
    assert complaints(row.manifest)


@pytest.mark.parametrize(("field", "value"), [("apiVersion", "training.dtjob.dev/v1"), ("kind", "TFJob")])
def test_another_kind_or_api_version_is_refused(field: str, value: str) -> None:
    assert len(complaints({**job(), field: value})) == 1


def test_an_empty_field_is_as_if_left_out() -> None:
    assert complaints(job(checkpoint=None, successPolicy=None)) == []
    assert complaints(job(strategy=None))  # type: ignore[arg-type]
