# SPDX-License-Identifier: Apache-2.0
"""Lists whose entries have keys, by which server-side apply merges them, or are a set: an API server takes no two with
the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dtjob.crd.answers.field_errors import Problem
from dtjob.crd.schema import LIST_KEYS, LIST_TYPE, Schema


def repeated_entries(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Entries that have the keys of one before them, or are the same as one in a set, anywhere in a value whose fields
    are right each by itself."""
    if isinstance(value, dict):
        known, further = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, item in value.items():
            yield from repeated_entries(item, known.get(name, further), f"{path}.{name}")
    elif isinstance(value, list):
        entry = schema.get("items", {})
        seen: set[Any] = set()
        for index, item in enumerate(value):
            yield from repeated_entries(item, entry, f"{path}[{index}]")
            if keys := schema.get(LIST_KEYS):
                identity = tuple(item.get(key, entry["properties"][key].get("default")) for key in keys)
                if identity in seen:
                    named = " and ".join(keys)
                    yield Problem(f"{path}[{index}]", f"has the {named} of an entry before it: change it, or remove it")
                seen.add(identity)
            elif schema.get(LIST_TYPE) == "set":
                if item in seen:
                    yield Problem(f"{path}[{index}]", f"{item} stands there before: remove it")
                seen.add(item)
