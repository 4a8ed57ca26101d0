# SPDX-License-Identifier: Apache-2.0
"""The CustomResourceDefinition: what an API server takes, with every rule at its place."""

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest

from dtjob.crd import definition
from dtjob.crd.definition import entries, status_schema
from dtjob.crd.rule import Reason, Rule
from dtjob.crd.rules.changes import CHANGE_RULES
from dtjob.crd.rules.registry import RULES
from dtjob.crd.schema import PRESERVE

SCHEMA = status_schema()
LARGEST = 200 * 1024
"""Bytes. An object's annotations can hold 256 KiB, and fields are only ever added."""


def test_plain_kubectl_apply_can_take_it() -> None:
    """It keeps what it applied in an annotation, as compact JSON."""
    size = len(json.dumps(definition.crd(), separators=(",", ":"), ensure_ascii=False).encode())
    assert size <= LARGEST, "shorten the texts in api/spec/pod_template.py first: each is there five or ten times"


def test_the_definition_has_its_names_columns_and_selectable_fields() -> None:
    names = definition.crd()["spec"]["names"]
    assert (names["shortNames"], names["categories"]) == (["dtj", "dtjob", "dtjobs"], ["training"])
    columns = definition.crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [c["name"].upper() for c in columns if "priority" not in c] == [
        *("PHASE", "READY", "STEP", "RESTARTS", "REASON", "AGE")
    ]
    assert [c["name"].upper() for c in columns if "priority" in c] == [
        *("STRATEGY", "PROGRESS(%)", "ETA(S)", "CHECKPOINT", "GOODPUT(%)", "WORKERS")
    ]
    selectable = definition.crd()["spec"]["versions"][0]["selectableFields"]
    assert [one["jsonPath"] for one in selectable] == [".status.phase", ".spec.strategy"]


def test_each_rule_is_in_the_schema_at_its_path() -> None:
    properties = definition.schema()["properties"]
    everywhere = list(definition._parts(definition.schema(), "spec.replicaSpecs.*.template.metadata.labels"))
    assert len(everywhere) == 5
    assert all("belong to dtjob" in labels["x-kubernetes-validations"][0]["message"] for labels in everywhere)
    messages = [rule.message for rule in CHANGE_RULES if rule.at == "spec"]
    unchanging = [rule for rule in properties["spec"]["x-kubernetes-validations"] if rule["message"] in messages]
    assert len(unchanging) == len(messages)
    # That of the replicas is at the root, as only there the status is seen.
    assert len(definition.schema()["x-kubernetes-validations"]) == len([rule for rule in RULES if rule.at == ""]) + 1


def parts(schema: dict[str, Any], path: str = "status") -> Iterator[tuple[str, dict[str, Any]]]:
    """All schemas in it by their paths."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(part := schema.get(name), dict):
            yield from parts(part, f"{path}[]")


def test_values_have_limits_and_formats() -> None:
    """An API server's rules over them cost what the longest costs, and no reader is surprised."""
    for path, part in parts(SCHEMA):
        match part["type"]:
            case "string":
                assert "maxLength" in part or "enum" in part or part.get("format") == "date-time", path
            case "integer":
                assert part["format"] in ("int32", "int64"), path
            case "array":
                assert (part["x-kubernetes-list-type"], "maxItems" in part) == ("map", True), path
            case other:
                assert other in ("object", "boolean"), path


def test_the_status_schema_has_no_defaults_and_no_fractional_numbers() -> None:
    assert [path for path, part in parts(SCHEMA) if "default" in part or part["type"] == "number"] == []


def test_the_schema_does_not_describe_the_internal_status() -> None:
    internal = SCHEMA["properties"]["internal"]
    assert (internal["type"], internal[PRESERVE], "properties" in internal) == ("object", True, False)


def test_every_block_takes_more_than_is_described() -> None:
    """A newer operator's status must outlive an older definition, which would prune it."""

    def closed(schema: dict[str, Any]) -> list[dict[str, Any]]:
        further = schema.get("additionalProperties")
        parts = [*schema.get("properties", {}).values(), schema.get("items"), further]
        kept = schema.get(PRESERVE) or further is not None or schema["type"] != "object"
        return [*([] if kept else [schema]), *(each for part in parts if part for each in closed(part))]

    assert closed(SCHEMA) == []


def test_conditions_are_merged_by_their_type() -> None:
    conditions = SCHEMA["properties"]["conditions"]
    assert (conditions["x-kubernetes-list-type"], conditions["x-kubernetes-list-map-keys"]) == ("map", ["type"])
    assert conditions["items"]["required"] == ["type", "status", "reason", "message", "lastTransitionTime"]


FRAME = "!has(self.suspend) || {}"
ONE = Rule("spec", "a", "add a", "x.y.a", frame=FRAME)
OTHER = Rule("spec", "b", 'say "b"', "x.y.b.c", frame=FRAME)


@pytest.mark.parametrize(
    ("field", "message", "path"),
    [
        ("replicaSpecs.ps", "remove it", {"fieldPath": ".replicaSpecs.ps"}),
        ("", "remove it", {}),
        ("metadata.name", "metadata.name: remove it", {}),  # which a fieldPath may not name
    ],
)
def test_a_rule_without_a_frame_has_its_own_entry(field: str, message: str, path: dict[str, str]) -> None:
    rule = Rule("spec", "has(self.suspend)", "remove it", field, Reason.FORBIDDEN)
    entry = {"rule": "has(self.suspend)", "message": message, "reason": "FieldValueForbidden", **path}
    other = dataclasses.replace(rule, at="spec.failurePolicy")
    assert list(entries([rule, other])) == [("spec", entry), ("spec.failurePolicy", entry)]


def test_a_rule_for_creation_asks_nothing_of_a_change() -> None:
    ((_, made),) = entries([Rule("spec", "has(self.image)", "add it", "image")])
    assert (made["rule"], made["optionalOldSelf"]) == ("oldSelf.hasValue() || (has(self.image))", True)


def test_a_rule_that_names_a_part_of_the_value_reads_it() -> None:
    rule = Rule("spec.a[]", "has(self.b)", "container {} has no b: add it", names="name")
    ((_, entry),) = entries([rule])
    assert entry["message"] == "container … has no b: add it"
    assert entry["messageExpression"] == '"container " + self.name + " has no b: add it"'


def test_rules_of_one_frame_share_an_entry_at_the_path_that_they_share() -> None:
    ((at, entry),) = entries([ONE, OTHER])
    assert (at, entry["fieldPath"]) == ("spec", ".x.y")
    assert entry["rule"] == "!has(self.suspend) || ((a) && (b))"


def test_the_first_broken_rule_is_said() -> None:
    ((_, entry),) = entries([ONE, OTHER])
    assert entry["message"] == "add a"
    assert entry["messageExpression"] == '!(!has(self.suspend) || a) ? "add a" : "say \\"b\\""'


@pytest.mark.parametrize(
    "change",
    [
        {"frame": "has(self.suspend) || {}"},
        {"at": "spec.failurePolicy"},
        {"reason": Reason.REQUIRED},
        {"at_creation": True},
    ],
)
def test_rules_that_differ_in_more_than_their_field_share_no_entry(change: dict[str, object]) -> None:
    made = list(entries([ONE, dataclasses.replace(OTHER, **change)]))  # type: ignore[arg-type]
    assert [entry["fieldPath"] for _, entry in made] == [".x.y.a", ".x.y.b.c"]
    assert all("messageExpression" not in entry for _, entry in made)
