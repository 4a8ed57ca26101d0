# SPDX-License-Identifier: Apache-2.0
"""Metadata that is refused (tests/refusals/metadata.py has most of it, with an API server's answers)."""

from typing import Any

import pytest

from dtjob.crd.answers.metadata import metadata_problems
from dtjob.crd.answers.problems import problems, to_job
from tests.refusals.metadata import with_metadata


@pytest.mark.parametrize("namespace", ["Bad_NS", "a.b", "-a", "a" * 64])
def test_a_text_that_is_no_namespace_is_refused(namespace: str) -> None:
    """kubectl says of it that there is none of that name."""
    (problem,) = problems(with_metadata(namespace=namespace))
    assert problem.field == "metadata.namespace"
    assert "is no namespace's name; write at most 63 lower-case letters" in problem.message


@pytest.mark.parametrize("namespace", ["a", "1-a", "a" * 63])
def test_a_text_that_is_a_namespace_is_accepted(namespace: str) -> None:
    assert problems(with_metadata(namespace=namespace)) == []


def test_a_manifest_without_metadata_has_no_problem_of_metadata() -> None:
    assert metadata_problems(None) == []


@pytest.mark.parametrize("metadata", ["x", [], 5])
def test_metadata_that_is_no_mapping_is_one_problem(metadata: Any) -> None:
    (problem,) = problems({**with_metadata(), "metadata": metadata})
    assert str(problem).startswith("metadata: must be a mapping")


def test_problems_of_metadata_come_before_problems_of_the_spec() -> None:
    manifest = with_metadata(namespace=5, labels={"team": 5})
    manifest["spec"]["image"] = ""
    assert [problem.field for problem in problems(manifest)] == [
        "metadata.namespace",
        "metadata.labels.team",
        "spec.image",
    ]


def test_an_empty_namespace_is_as_if_left_out() -> None:
    assert to_job(with_metadata(namespace=None)).metadata.namespace == "default"


@pytest.mark.parametrize("time", ["2026-13-01T10:00:00Z", "2026-11-23", "2026-11-23T10:00:00", "20261123T100000Z"])
def test_a_text_that_is_no_time_is_refused(time: str) -> None:
    (problem,) = metadata_problems({"deletionTimestamp": time})
    assert str(problem).startswith(f"metadata.deletionTimestamp: {time!r} is no time; leave it out, or write")
