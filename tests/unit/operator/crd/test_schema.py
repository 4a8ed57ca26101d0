# SPDX-License-Identifier: Apache-2.0
"""The models as a structural schema."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import Field

from dtjob.api.block import Block, OpenBlock
from dtjob.api.job import Spec
from dtjob.crd.schema import spec_schema, structural


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for part in schema.get("properties", {}).values():
        yield from nodes(part)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key])


class Kind(StrEnum):
    A = "a"
    B = "b"


class Inner(OpenBlock):
    """An open
    block."""

    size: Annotated[int, Field(ge=1)] = 4


class Outer(Block):
    """A block."""

    first_kind: Kind | None = None
    """Which kind."""
    inner: Inner = Inner()
    """The inner one."""
    amount: int | Annotated[str, Field(max_length=8)] = 1
    """How much."""
    names: list[str] = Field(default_factory=list)
    """Names."""


def test_models_are_inlined_and_described_as_their_fields_are() -> None:
    assert structural(Outer) == {
        "type": "object",
        "description": "A block.",
        "properties": {
            "firstKind": {"type": "string", "enum": ["a", "b"], "description": "Which kind."},
            "inner": {
                "type": "object",
                "description": "The inner one.",
                "properties": {"size": {"type": "integer", "minimum": 1, "default": 4}},
                "x-kubernetes-preserve-unknown-fields": True,
                "default": {"size": 4},  # written out: a rule is checked against the default unfilled
            },
            "amount": {"x-kubernetes-int-or-string": True, "maxLength": 8, "description": "How much.", "default": 1},
            "names": {"type": "array", "items": {"type": "string"}, "description": "Names."},
        },
    }


def test_a_union_that_a_structural_schema_cannot_express_raises_an_error() -> None:
    class Bad(Block):
        field: bool | int = 1

    with pytest.raises(ValueError, match="no structural schema"):
        structural(Bad)


def test_the_schema_is_structural() -> None:
    for node in nodes(spec_schema()):
        assert "type" in node or "x-kubernetes-int-or-string" in node
        assert not {"$ref", "anyOf", "title"} & set(node)


def test_defaults_are_those_of_the_models() -> None:
    defaults = {name: part["default"] for name, part in spec_schema()["properties"].items() if "default" in part}
    model = Spec.model_validate({"strategy": "Default", "image": "a", "replicaSpecs": {}})
    whole = model.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"strategy", "replica_specs", "image"}
    )
    del whole["failurePolicy"]["rules"]  # an empty list is as if left out
    assert defaults == whole


def test_a_default_that_depends_on_another_field_is_not_filled_in() -> None:
    storage = spec_schema()["properties"]["checkpoint"]["properties"]["storage"]["properties"]
    for field in ("mountPath", "mountOn"):
        assert "default" not in storage[field]
