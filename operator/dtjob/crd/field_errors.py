"""What is wrong with single fields of a manifest, each as one sentence with the field's dotted path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dtjob.crd.schema import PRESERVE, Schema


@dataclass(frozen=True)
class Problem:
    """One thing that an API server would refuse: the field (dotted path, "" for the whole) and what to write."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


_KINDS = {
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping (names with values)",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "model_type": "must be a mapping (names with values)",
    "model_attributes_type": "must be a mapping (names with values)",
}
"""pydantic's errors about the kind of a value, in words."""


def dotted(location: tuple[str | int, ...]) -> str:
    """pydantic's location as Kubernetes writes fields: `spec.replicas.worker.count`, `spec.program.args[1]`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def sentence(error: Mapping[str, Any], schema: Schema) -> Problem:
    """One of pydantic's errors as a problem. `schema` is that of the whole manifest, to name the fields there are."""
    kind, given, limits = str(error["type"]), error.get("input"), error.get("ctx") or {}
    location: tuple[str | int, ...] = error["loc"]
    if location and location[-1] in ("int", "str", "constrained-str"):  # the two halves of a quantity
        return Problem(
            dotted(location[:-1]), f"must be a quantity, such as 4, 500m or 16Gi (in quotes), not {_show(given)}"
        )
    path = dotted(location)
    if kind == "missing":
        return Problem(path, "is required; add it")
    if kind == "extra_forbidden":
        return Problem(path, f"is an unknown field; {_instead(location, schema)}")
    if kind == "enum":
        return Problem(path, f"must be one of {limits['expected'].replace(chr(39), '')}, not {_show(given)}")
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = f"at least {limits['ge']}" if kind == "greater_than_equal" else f"at most {limits['le']}"
        return Problem(path, f"must be {bound}, not {_show(given)}")
    if kind == "string_too_short":
        return Problem(path, "must not be empty; give it a value")
    if kind == "string_too_long":
        return Problem(path, f"must have at most {limits['max_length']} characters, and has {len(str(given))}")
    if kind == "too_long":
        return Problem(path, f"must have at most {limits['max_length']} entries, and has {limits['actual_length']}")
    if kind == "string_type":
        mend = ": put it into quotes" if isinstance(given, int | float) else ""
        return Problem(path, f"must be text, not {_show(given)}{mend}")
    if kind in _KINDS:
        return Problem(path, f"{_KINDS[kind]}, not {_show(given)}")
    return Problem(path, str(error["msg"]))


def open_block_errors(value: Any, schema: Schema, path: str = "") -> Iterator[Problem]:
    """Fields inside blocks that pydantic leaves open (a volume's sources) that the schema does not have, or not so."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from open_block_errors(item, schema.get("items", {}), f"{path}[{index}]")
    elif isinstance(value, dict):
        known, further = schema.get("properties", {}), schema.get("additionalProperties")
        for name, item in value.items():
            where = f"{path}.{name}" if path else str(name)
            if name in known:
                yield from open_block_errors(item, known[name], where)
            elif known and further is None and PRESERVE not in schema:
                yield Problem(where, f"is an unknown field; {_meant(name, known)}")
    elif schema.get("type") == "object":
        yield Problem(path, f"must be a mapping (names with values), not {_show(value)}")


def without_empty_fields(value: Any, schema: Schema) -> Any:
    """The value without fields that have nothing after the colon, as the API server takes it: a null is as if left out.

    What the schema does not know (the open parts of a pod's spec) stays as it is.
    """
    if isinstance(value, dict):
        known, further = schema.get("properties", {}), schema.get("additionalProperties")
        return {
            name: without_empty_fields(item, known.get(name, further) or {})
            for name, item in value.items()
            if item is not None or known.get(name, further) is None
        }
    if isinstance(value, list):
        return [without_empty_fields(item, schema.get("items", {})) for item in value]
    return value


def _instead(location: tuple[str | int, ...], schema: Schema) -> str:
    """The field that was probably meant, or all there are."""
    for part in location[:-1]:
        if isinstance(part, int):
            schema = schema.get("items", {})
        else:
            schema = schema.get("properties", {}).get(part) or schema.get("additionalProperties") or {}
    return _meant(str(location[-1]), schema.get("properties", {}))


def _meant(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else f"remove it; there are {', '.join(sorted(known))}"


def _show(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None:
        return "nothing"
    return str(value).lower() if isinstance(value, bool) else repr(value)
