# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes takes in a pod, as a schema: fields and types, also of the parts that the definition leaves open."""

import json
import pkgutil
import re
from functools import cache

from dtjob.crd.schema import INT_OR_STRING, QUANTITY, Schema

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
