"""Schemas of the values in a job's status."""

from __future__ import annotations

from typing import Any

from dtjob.crd.schema import PRESERVE, Schema


def text(description: str) -> Schema:
    """Words."""
    return {"type": "string", "description": description}


def whole(description: str) -> Schema:
    """A whole number."""
    return {"type": "integer", "description": description}


def number(description: str) -> Schema:
    """A number."""
    return {"type": "number", "description": description}


def time(description: str) -> Schema:
    """A moment, as RFC 3339 writes it."""
    return {"type": "string", "format": "date-time", "description": description}


def block(description: str, **properties: Any) -> Schema:
    """An object of which more may be written than is described."""
    made: Schema = {"type": "object", "description": description, PRESERVE: True}
    return made | ({"properties": properties} if properties else {})


def tasks(description: str) -> Schema:
    """A list of tasks, grouped by role and attempt."""
    group = block(
        "Tasks of one role at one attempt.",
        role=text("Their role."),
        attempt=whole("Their attempt."),
        indexes=text("Their indexes: 0-3,7."),
    )
    return {
        "type": "array",
        "items": group | {"required": ["role", "attempt", "indexes"]},
        "description": description,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["role", "attempt"],
    }


def map_of(description: str, value: Schema) -> Schema:
    """An object whose names are data."""
    return {"type": "object", "description": description, "additionalProperties": value}


def metrics(description: str) -> Schema:
    """Metrics by name."""
    return map_of(description, {"description": "Its value.", PRESERVE: True})


def either(*words: str) -> str:
    """These words as a choice: `a, b or c`."""
    return f"{', '.join(words[:-1])} or {words[-1]}"
