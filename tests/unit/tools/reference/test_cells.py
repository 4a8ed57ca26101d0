# SPDX-License-Identifier: Apache-2.0
"""The cells of the reference page's tables."""

from typing import Any

import pytest

from tools.reference.cells import default_of, described, row, type_of

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "boolean"}, "boolean"),
        ({"type": "integer", "minimum": 1, "maximum": 5}, "integer, 1 to 5"),
        ({"type": "integer", "minimum": 0, "maximum": 5}, "integer, 0 to 5"),
        ({"type": "integer", "minimum": 0, "maximum": 2**31 - 1}, "integer, at least 0"),
        ({"type": "integer", "maximum": 5}, "integer, at most 5"),
        ({"type": "string", "minLength": 1, "maxLength": 9}, "string, at most 9 characters"),
        ({"type": "string", "minLength": 2, "maxLength": 9}, "string, 2 to 9 characters"),
        ({"type": "string", "enum": ["A", "True"]}, '`A`, `"True"`'),
        ({"type": "string", "format": "date-time"}, "time"),
        ({"x-kubernetes-int-or-string": True}, "integer or string"),
        ({"type": "object"}, "object"),
        ({"type": "object", "additionalProperties": TEXT, "maxProperties": 3}, "map of strings, at most 3 entries"),
        ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}, "list of strings, each once"),
        (
            {"type": "array", "items": {"type": "string", "enum": ["A", "B"]}, "maxItems": 1},
            "list of `A`, `B`, at most 1 entries",
        ),
        ({"description": "Any value."}, "any"),
    ],
)
def test_types_have_their_limits(schema: dict[str, Any], said: str) -> None:
    assert type_of(schema) == said


def test_blocks_link_to_their_section() -> None:
    items = {"type": "object", "properties": {"name": {"type": "string"}}}
    merged = {"type": "array", "items": items, "x-kubernetes-list-map-keys": ["name"]}
    assert type_of(items, "spec") == "[object](#spec)"
    assert type_of(merged, "spec") == "list of [objects](#spec), merged by `name`"
    assert type_of({"type": "object", "additionalProperties": items}, "spec") == "map of [objects](#spec)"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"default": False}, "`false`"),
        ({"default": "True"}, '`"True"`'),
        ({"default": {"port": 1}}, ""),
        ({"description": "A path. Defaults to /checkpoints."}, "`/checkpoints`"),
        ({"description": "Chief (the default): its node. All: every node."}, "`Chief`"),
        ({"description": "A path. Defaults to the root of it."}, ""),
        ({}, ""),
    ],
)
def test_a_default_is_the_schemas_or_the_one_that_the_description_names(schema: dict[str, Any], said: str) -> None:
    assert default_of(schema, required=False) == said
    assert default_of(schema, required=True) == "required"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Example: kueue.x-k8s.io/multikueue. dtjob waits.", "Example: `kueue.x-k8s.io/multikueue`. dtjob waits."),
        ("Sets failurePolicy.rules[] and TF_CONFIG.", "Sets `failurePolicy.rules[]` and `TF_CONFIG`."),
        ("Serves /status, over gRPC.", "Serves `/status`, over gRPC."),
        ("Names under training.dtjob.dev/ are refused.", "Names under `training.dtjob.dev/` are refused."),
        ("Left out: 10. Seconds.", "Left out: 10. Seconds."),
    ],
)
def test_names_and_examples_are_code(text: str, said: str) -> None:
    assert described({"description": text}) == said


def test_a_bar_does_not_end_a_cell() -> None:
    assert row("a|b", "c") == "| a\\|b | c |"
