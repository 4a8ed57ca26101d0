# SPDX-License-Identifier: Apache-2.0
"""What an API server takes for a job's status, and what it does to objects: it copies and merges them."""

import json
import marshal
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from dtjob.crd.definition import status_schema

LARGEST = 128 * 1024
"""Bytes. etcd takes 1.5 MiB; less here, so that histories with a status that is too large stay quick."""

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_HUGE = re.compile(r"\d{309}")
_SCHEMA = status_schema()
_TYPES = {"object": dict, "array": list, "string": str, "number": (int, float), "boolean": bool}


def refusal(status: dict[str, Any]) -> str | None:
    """Why the API server refuses this status, None where it does not. Raises ValueError on what is no JSON."""
    text = json.dumps(status, allow_nan=False)
    if len(text) > LARGEST:
        return "etcdserver: request is too large"
    if _HUGE.search(text):
        return "cannot unmarshal number into Go value of type float64"
    return _mismatch(_SCHEMA, status, "status")


def _mismatch(schema: dict[str, Any], value: Any, where: str) -> str | None:
    if not schema:
        return None
    if "type" in schema and not _is_of(schema["type"], value):
        return f"{where}: must be of type {schema['type']}: {str(value)[:80]}"
    if not _is_within(schema, value):
        return f"{where}: is out of bounds: {str(value)[:80]}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where}: unsupported value {value!r}"
    if schema.get("format") == "date-time" and not _RFC3339.fullmatch(value):
        return f"{where}: must be of type date-time: {value!r}"
    inside: list[tuple[dict[str, Any], Any, str]] = []
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
        inside = [(properties.get(name, others), one, f"{where}.{name}") for name, one in value.items()]
    elif isinstance(value, list):
        inside = [(schema.get("items", {}), one, f"{where}[{index}]") for index, one in enumerate(value)]
    return next((why for one in inside if (why := _mismatch(*one))), None)


def _is_within(schema: dict[str, Any], value: Any) -> bool:
    if isinstance(value, (str, list)):
        return len(value) <= schema.get("maxItems" if isinstance(value, list) else "maxLength", len(value))
    if schema.get("type") != "integer":
        return True
    bound = 2**31 if schema.get("format") == "int32" else 2**63
    return max(-bound, schema.get("minimum", -bound)) <= value <= min(bound - 1, schema.get("maximum", bound))


def _is_of(type_: str, value: Any) -> bool:
    if type_ == "integer":
        return not isinstance(value, bool) and isinstance(value, (int, float)) and value == int(value)
    if isinstance(value, bool):
        return type_ == "boolean"
    return isinstance(value, _TYPES[type_])


Plain = TypeVar("Plain")


def copied(plain: Plain) -> Plain:
    """A copy of dicts, lists, strings and numbers. Raises ValueError where anything else is among them."""
    copy: Plain = marshal.loads(marshal.dumps(plain))
    return copy


def merge(there: dict[str, Any], patch: Mapping[str, Any]) -> None:
    """A JSON merge patch (RFC 7386)."""
    for name, value in patch.items():
        if isinstance(value, dict):
            merge(there.setdefault(name, {}), value)
        elif value is None:
            there.pop(name, None)
        else:
            there[name] = value
