# SPDX-License-Identifier: Apache-2.0
"""The reference page says of each field of the spec what `problems` says of a change of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from dtjob.api.phase import Phase
from dtjob.crd.schema import INT_OR_STRING, Schema, spec_schema
from tests.refusals.manifests import Manifest, job
from tests.unit.operator.crd.changed import changed_fields
from tools.reference.changes import (
    ELASTIC,
    NO,
    PARTLY,
    PARTLY_SUSPENDED,
    SUSPENDED,
    YES,
    Path,
    may_change,
    may_change_at,
)

NEVER_MIND = {"volume"}
"""Open blocks, of which the page says the same as of the block around them."""


def leaves(schema: Schema, path: Path = ()) -> Iterator[Path]:
    """The path of each field that has no fields itself, without marks of lists."""
    for name, part in schema["properties"].items():
        inner = part.get("items") or part
        if inner.get("properties") and name not in NEVER_MIND:
            yield from leaves(inner, (*path, name))
        elif name not in NEVER_MIND:
            yield (*path, name)


def value(schema: Schema, number: int) -> Any:
    """A value of a field: one for each number."""
    if schema.get(INT_OR_STRING) or schema.get("type") == "integer":
        return int(schema.get("minimum", 0)) + number
    match schema["type"]:
        case "string":
            return schema["enum"][number] if "enum" in schema else "ab"[number] * max(1, schema.get("minLength", 1))
        case "boolean":
            return bool(number)
        case "array":
            return [value(schema["items"], number)]
    if "properties" in schema:
        return {name: value(schema["properties"][name], 0) for name in schema.get("required", ())}
    further = schema.get("additionalProperties")
    return {"a": value(further, number) if isinstance(further, dict) else number}


def with_value(schema: Schema, path: Path, number: int) -> Any:
    """A block with what it needs and with this value at the path."""
    if schema.get("type") == "array":
        return [with_value(schema["items"], path, number)]
    if not path:
        return value(schema, number)
    block = value(schema, 0)
    return {**block, path[0]: with_value(schema["properties"][path[0]], path[1:], number)}


def manifest(path: Path, number: int, *, suspended: bool) -> Manifest:
    """A job with a value at this path of its spec, which is suspended or has run."""
    made = job()
    spec = with_value(spec_schema(), path, number)
    spec = {"suspend": True, **spec} if suspended else spec
    made["spec"] = {"strategy": "Default", **spec}
    made["status"] = {} if suspended else {"phase": Phase.RUNNING.value, "startTime": "2026-11-21T10:00:00Z"}
    return made


def is_refused(path: Path, *, suspended: bool) -> bool:
    old, new = (manifest(path, number, suspended=suspended) for number in (0, 1))
    assert old["spec"] != new["spec"]
    return bool(changed_fields(new, old))


@pytest.mark.parametrize("path", list(leaves(spec_schema())), ids=".".join)
def test_a_change_is_refused_if_the_page_says_so(path: Path) -> None:
    said = may_change(path)
    assert said in (YES, NO, SUSPENDED, ELASTIC)
    assert is_refused(path, suspended=False) is (said != YES)
    assert is_refused(path, suspended=True) is (said in (NO, ELASTIC))


def test_the_number_of_elastic_workers_may_change() -> None:
    old, new = (manifest(("replicaSpecs", "worker", "replicas"), number, suspended=False) for number in (0, 1))
    assert changed_fields(new, old)
    new["spec"]["elasticPolicy"] = {}
    assert changed_fields(new, old) == []


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (("replicaSpecs",), PARTLY),
        (("replicaSpecs", "ps"), PARTLY),
        (("replicaSpecs", "ps", "replicas"), NO),
        (("replicaSpecs", "ps", "template"), PARTLY_SUSPENDED),
        (("replicaSpecs", "ps", "template", "spec", "containers"), PARTLY_SUSPENDED),
        (("replicaSpecs", "ps", "template", "spec", "initContainers"), SUSPENDED),
        (("replicaSpecs", "ps", "template", "metadata"), SUSPENDED),
        (("failurePolicy",), YES),
        (("checkpoint",), NO),
    ],
)
def test_a_block_may_change_as_far_as_its_fields(path: Path, said: str) -> None:
    assert may_change(path) == said


def test_a_field_at_several_paths_has_one_answer_with_its_exceptions() -> None:
    container = ("replicaSpecs", "ps", "template", "spec", "containers", "image")
    init_container = ("replicaSpecs", "ps", "template", "spec", "initContainers", "image")
    assert may_change_at([container, container]) == NO
    assert may_change_at([container, init_container]) == "no; of `initContainers`, while suspended"
