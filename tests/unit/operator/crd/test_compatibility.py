# SPDX-License-Identifier: Apache-2.0
"""Changes of a definition that break its users are found, and additions are not."""

import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.crd import definition
from dtjob.crd.schema import LIST_KEYS
from tests.unit.operator.crd.breaking_changes import breaking_changes

ROOT = Path(__file__).parents[4]
FILE = "crds/distributedtrainingjobs.yaml"

OLD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
        "count": {"type": "integer", "minimum": 1, "maximum": 10},
        "name": {"type": "string", "maxLength": 10, "pattern": "^a"},
        "amount": {"x-kubernetes-int-or-string": True},
        "entries": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            LIST_KEYS: ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def crd(schema: dict[str, Any], **version: Any) -> dict[str, Any]:
    whole = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}, **version}
    return {"spec": {"versions": [whole]}}


def changed(*path: str, to: Any) -> dict[str, Any]:
    """The old schema with what is at this path set to `to`; `...` removes it."""
    schema = deepcopy(OLD)
    block = schema
    for name in path[:-1]:
        block = block[name]
    if to is ...:
        del block[path[-1]]
    else:
        block[path[-1]] = to
    return schema


ENTRY, LABEL = ("properties", "entries", "items"), ("properties", "labels", "additionalProperties")
BREAKING = {
    "removed field": (("properties", "count"), ..., ".count: is removed"),
    "removed field of an entry": ((*ENTRY, "properties", "name"), ..., ".entries[].name: is removed"),
    "other type": (("properties", "count", "type"), "string", ".count: the type integer is now string"),
    "other type of an amount": (("properties", "amount"), {"type": "string"}, ".amount: the type integer or string is"),
    "new required field": (("required",), ["count"], ".count: is now required"),
    "removed value": (("properties", "mode", "enum"), ["A"], ".mode: the value B is removed"),
    "values where all were allowed": (("properties", "name", "enum"), ["ab"], ".name: only some values are allowed"),
    "smaller maximum": (("properties", "count", "maximum"), 9, ".count: maximum 10 is now 9"),
    "larger minimum": (("properties", "count", "minimum"), 2, ".count: minimum 1 is now 2"),
    "shorter text": (("properties", "name", "maxLength"), 9, ".name: maxLength 10 is now 9"),
    "shorter value of a map": ((*LABEL, "maxLength"), 9, ".labels.*: maxLength 63 is now 9"),
    "new bound": (("properties", "entries", "maxItems"), 3, ".entries: maxItems is now 3"),
    "other pattern": (("properties", "name", "pattern"), "^b", ".name: pattern ^a is now ^b"),
    "removed default": (("properties", "mode", "default"), ..., ".mode: default A is now nothing"),
    "other default": (("properties", "mode", "default"), "B", ".mode: default A is now B"),
    "other keys": (("properties", "entries", LIST_KEYS), ["id"], f".entries: {LIST_KEYS} ['name'] is now ['id']"),
    "closed block": (("properties", "open"), {"type": "object"}, ".open: further fields are removed now"),
}  # fmt: skip
HARMLESS = {
    "new field": (("properties", "new"), {"type": "string"}),
    "new value": (("properties", "mode", "enum"), ["A", "B", "C"]),
    "all values": (("properties", "mode", "enum"), ...),
    "larger maximum": (("properties", "count", "maximum"), 11),
    "smaller minimum": (("properties", "count", "minimum"), 0),
    "removed bound": (("properties", "name", "maxLength"), ...),
    "removed pattern": (("properties", "name", "pattern"), ...),
    "new default": (("properties", "count", "default"), 3),
    "other description": (("description",), "Other words."),
    "field that is optional now": ((*ENTRY, "required"), []),
}


@pytest.mark.parametrize("case", BREAKING)
def test_each_breaking_change_of_a_definition_is_found(case: str) -> None:
    path, to, said = BREAKING[case]
    found = breaking_changes(crd(OLD), crd(changed(*path, to=to)))
    assert len(found) == 1
    assert found[0].startswith(f"v1{said}")


@pytest.mark.parametrize("case", HARMLESS)
def test_an_addition_to_a_definition_is_no_breaking_change(case: str) -> None:
    path, to = HARMLESS[case]
    assert breaking_changes(crd(OLD), crd(changed(*path, to=to))) == []


def test_a_version_stays_served() -> None:
    assert breaking_changes(crd(OLD), {"spec": {"versions": []}}) == ["v1: is no longer served"]
    assert breaking_changes(crd(OLD), crd(OLD, served=False)) == ["v1: is no longer served"]
    assert breaking_changes(crd(OLD, served=False), {"spec": {"versions": []}}) == []


def test_the_definition_does_not_break_itself() -> None:
    assert breaking_changes(definition.crd(), definition.crd()) == []


def git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def test_the_last_release_is_not_broken() -> None:
    tags = git("tag", "--list", "v*", "--sort=-version:refname").split()
    if not tags:
        pytest.skip("there is no release yet: no tag v* in this repository")
    released = git("show", f"{tags[0]}:{FILE}")
    assert released, f"{tags[0]} has no {FILE}"
    assert breaking_changes(yaml.safe_load(released), definition.crd()) == []
