# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes takes in a pod, as a schema: fields and types, also of the parts that the definition leaves open."""

import json
import pkgutil
import re
from functools import cache

from dtjob.crd.answers.field_errors import QUANTITY
from dtjob.crd.schema import INT_OR_STRING, Schema

_PLAIN: dict[str, Schema] = {
    "text": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "port": {INT_OR_STRING: True},
    "quantity": {"anyOf": [{"type": "string"}, {"type": "number"}], "format": QUANTITY},
    "any": {},
}
_TYPE = re.compile(r"\[(?P<item>.+)\]|\{(?P<value>.+)\}|(?P<plain>\w+)")


@cache
def pod_spec_schema() -> Schema:
    """The schema of a pod's spec. Treat as read only."""
    return _of_type("PodSpec", _types())


@cache
def volume_source_schema() -> Schema:
    """The schema of a pod's volume without its name. Treat as read only."""
    volume = _of_type("Volume", _types())
    sources = {name: source for name, source in volume["properties"].items() if name != "name"}
    return {**volume, "properties": sources}


@cache
def environment_schema() -> Schema:
    """The schema of a container's variables. Treat as read only."""
    return _of_type("[EnvVar]", _types())


@cache
def _types() -> dict[str, dict[str, str]]:
    """The fields of each type with their types, as `make pod-fields` has written them beside this file."""
    found: dict[str, dict[str, str]] = json.loads(pkgutil.get_data(__package__, "pod_fields.json") or b"")
    return found


def _of_type(name: str, types: dict[str, dict[str, str]]) -> Schema:
    """A null is as if left out everywhere."""
    found = _TYPE.fullmatch(name)
    assert found, name
    if item := found["item"]:
        return {"type": "array", "nullable": True, "items": _of_type(item, types)}
    if value := found["value"]:
        return {"type": "object", "nullable": True, "additionalProperties": _of_type(value, types)}
    if name in _PLAIN:
        return {"nullable": True, **_PLAIN[name]}
    properties = {field: _of_type(kind, types) for field, kind in types[name].items()}
    return {"type": "object", "nullable": True, "properties": properties}
