# SPDX-License-Identifier: Apache-2.0
"""The schema of a whole manifest, as `make crd` has written it beside this file; and what Kubernetes takes in metadata
and pods, also in the parts that the definition leaves open."""

import json
import pkgutil
import re
from functools import cache
from typing import Any

from dtjob.crd.schema import INT_OR_STRING, QUANTITY, Schema, spec_schema

_PLAIN: dict[str, Schema] = {
    "text": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "port": {INT_OR_STRING: True},
    "quantity": {"format": QUANTITY},
    "any": {},
}
_TYPE = re.compile(r"\[(?P<item>.+)\]|\{(?P<value>.+)\}|(?P<plain>\w+)")


@cache
def schema_of(name: str) -> Schema:
    """The schema of a type of Kubernetes, such as PodSpec, [EnvVar] for a list, {text} for a mapping. A null is as if
    left out everywhere. Treat as read only."""
    found = _TYPE.fullmatch(name)
    assert found, name
    if item := found["item"]:
        return {"type": "array", "nullable": True, "items": schema_of(item)}
    if value := found["value"]:
        return {"type": "object", "nullable": True, "additionalProperties": schema_of(value)}
    if name in _PLAIN:
        return {"nullable": True, **_PLAIN[name]}
    properties = {field: schema_of(kind) for field, kind in _types()[name].items()}
    return {"type": "object", "nullable": True, "properties": properties}


@cache
def _types() -> dict[str, dict[str, str]]:
    """The fields of each type with their types, as `make pod-fields` has written them beside this file."""
    found: dict[str, dict[str, str]] = json.loads(pkgutil.get_data(__package__, "pod_fields.json") or b"")
    return found


MANIFEST_FILE = "manifest_schema.json"
"""Lies beside this file."""


@cache
def manifest_schema() -> Schema:
    """The schema of a whole manifest without descriptions, from its file. Treat as read only.

    To make it from the models takes a fifth of the time of a command.
    """
    found: Schema = json.loads(pkgutil.get_data(__package__, MANIFEST_FILE) or b"")
    return found


def manifest_text() -> str:
    """The content of the file."""
    parts = {"spec": spec_schema(), "metadata": schema_of("ObjectMeta"), "apiVersion": {}, "kind": {}}
    return json.dumps(_plain({"type": "object", "properties": parts}), indent=1) + "\n"


def _plain(part: Any) -> Any:
    """The part without `description`, and without `nullable`, because a manifest loses its nulls before it is checked.
    An object under one of these names is the schema of a field, and stays."""
    if not isinstance(part, dict):
        return part
    noise = ("description", "nullable")
    kept = {name: one for name, one in part.items() if name not in noise or isinstance(one, dict)}
    return {name: _plain(one) for name, one in kept.items()}
