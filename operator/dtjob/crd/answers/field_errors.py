# SPDX-License-Identifier: Apache-2.0
"""What is wrong with single fields of a manifest, each as one sentence with the field's dotted path. Also: entries of a
list with the keys of an earlier entry, by which server-side apply merges them."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pydantic import ValidationError

from dtjob.api.quantity import is_quantity
from dtjob.api.words import meant
from dtjob.crd.answers import hints
from dtjob.crd.answers.schemas import manifest_schema
from dtjob.crd.schema import INT_OR_STRING, LIST_KEYS, LIST_TYPE, PRESERVE, QUANTITY, Schema

UNKNOWN = "is an unknown field"
"""How the message about a field begins that the kind does not have."""


@dataclass(frozen=True)
class Problem:
    """One thing that an API server would refuse: the field (dotted path, "" for the whole) and what to write."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def in_words(error: ValidationError) -> list[Problem]:
    """What pydantic says of a manifest, each thing once."""
    details = error.errors(include_url=False)
    return list(dict.fromkeys(one for detail in details for one in _sentences(detail)))


def dotted(location: tuple[str | int, ...]) -> str:
    """pydantic's location as Kubernetes writes fields: `spec.replicaSpecs.worker.replicas`, `spec.program.args[1]`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _sentences(error: Mapping[str, Any]) -> Iterator[Problem]:
    """One of pydantic's errors as problems: several of an unknown block in which we know words of other APIs."""
    kind, location = str(error["type"]).replace("literal_error", "enum"), error["loc"]
    if kind == "extra_forbidden":
        found = dict(hints.answers(dotted(location), error.get("input"))) or {dotted(location): _instead(location)}
        yield from (Problem(path, f"{UNKNOWN}; {advice}") for path, advice in found.items())
        return
    if location and location[-1] in QUANTITY_HALVES:
        location, kind = location[:-1], QUANTITY
    message = str(error["msg"])
    if kind in _MESSAGES:
        message = _MESSAGES[kind](error.get("input"), error.get("ctx") or {})
        advice = _other_value(dotted(location), error) if kind == "enum" else None
        message += f": {advice}" if advice else ""
    yield Problem(dotted(location), message)


def _other_value(path: str, error: Mapping[str, Any]) -> str | None:
    """What to write for a value that the field does not take. None: nobody knows what was meant."""
    given = error.get("input")
    if advice := hints.of_value(path, given):
        return advice
    taken = re.findall(r"'([^']*)'", str((error.get("ctx") or {}).get("expected", "")))
    word = meant(given, taken) if isinstance(given, str) else None
    return f"write {word}" if word else None


def open_block_errors(value: Any, schema: Schema, path: str = "") -> Iterator[Problem]:
    """Fields inside blocks that pydantic leaves open that the schema does not have, or has with another type."""
    if value is None and schema.get("nullable"):
        return
    if problem := _of_another_type(value, schema):
        yield Problem(path, problem)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from open_block_errors(item, schema.get("items", {}), f"{path}[{index}]")
    elif isinstance(value, dict):
        known, further = schema.get("properties", {}), schema.get("additionalProperties")
        for name, item in value.items():
            where = f"{path}.{name}" if path else str(name)
            if name in known or isinstance(further, dict):
                yield from open_block_errors(item, known.get(name, further), where)
            elif known and PRESERVE not in schema and not (item is None and schema.get("nullable")):
                yield Problem(where, f"{UNKNOWN}; {_meant(name, known)}")


def _of_another_type(value: Any, schema: Schema) -> str:
    """What the value must be; empty if it is that, or if the schema takes any type."""
    if schema.get("format") == QUANTITY:
        return "" if is_quantity(value) else _MESSAGES[QUANTITY](value, {})
    kind = "port" if schema.get(INT_OR_STRING) else schema.get("type")
    if kind is None:
        return ""
    types, error = _TYPES[kind]
    is_one = isinstance(value, types) and (kind == "boolean") == isinstance(value, bool)
    return "" if is_one else _MESSAGES[error](value, {})


def without_empty_fields(value: Any, schema: Schema) -> Any:
    """The value without fields that have nothing after the colon, as the API server takes it: a null is as if left out.

    What the schema does not know (the open parts of a pod's spec) stays as it is.
    """
    if isinstance(value, dict):
        parts = ((name, item, part_of(schema, name)) for name, item in value.items())
        return {
            name: without_empty_fields(item, part)
            for name, item, part in parts
            if item is not None or part.get("nullable")
        }
    if isinstance(value, list):
        return [without_empty_fields(item, schema.get("items", {})) for item in value]
    return value


def with_defaults(value: Any, schema: Schema) -> Any:
    """The value with the defaults of the fields that it leaves out, as the API server fills them in."""
    if isinstance(value, dict):
        defaults = {name: part["default"] for name, part in schema.get("properties", {}).items() if "default" in part}
        return {name: with_defaults(item, part_of(schema, name)) for name, item in (defaults | value).items()}
    if isinstance(value, list):
        return [with_defaults(item, schema.get("items", {})) for item in value]
    return value


def part_of(schema: Schema, key: str | int) -> Schema:
    """The schema of a field, or of an entry of a list. What the schema does not know may be anything."""
    if isinstance(key, int):
        return schema.get("items", {})  # type: ignore[no-any-return]
    return schema.get("properties", {}).get(key) or schema.get("additionalProperties") or {"nullable": True}


def _instead(location: tuple[str | int, ...]) -> str:
    """The field that was probably meant, or all there are."""
    schema = reduce(part_of, location[:-1], manifest_schema())
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


def _too_long(given: Any, limits: Mapping[str, Any]) -> str:
    return f"must have at most {limits['max_length']} characters, and has {len(str(given))}"


def _not_text(given: Any, _: Mapping[str, Any]) -> str:
    return f"must be text, not {_show(given)}" + (": put it into quotes" if isinstance(given, int | float) else "")


def _must_be(what: str) -> Callable[[Any, Mapping[str, Any]], str]:
    return lambda given, _: f"must be {what}, not {_show(given)}"


QUANTITY_HALVES = ("int", "str", "constrained-str")
"""How pydantic ends the location of an error in a quantity, which is a number or a text."""

_WHOLE, _MAPPING = _must_be("a whole number"), _must_be("a mapping (names with values)")
_MESSAGES: Mapping[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "missing": lambda _, __: "is required; add it",
    QUANTITY: _must_be("a quantity, such as 4, 500m or 16Gi (in quotes)"),
    "enum": lambda given, limits: f"must be one of {limits['expected'].replace(chr(39), '')}, not {_show(given)}",
    "greater_than_equal": lambda given, limits: f"must be at least {limits['ge']}, not {_show(given)}",
    "less_than_equal": lambda given, limits: f"must be at most {limits['le']}, not {_show(given)}",
    "string_too_short": lambda _, __: "must not be empty; give it a value",
    "string_too_long": _too_long,
    "too_long": lambda _, limits: (
        f"must have at most {limits['max_length']} entries, and has {limits['actual_length']}"
    ),
    "too_short": lambda _, limits: f"must have at least {limits['min_length']} entry; add one, or remove it",
    "string_type": _not_text,
    "bool_type": _must_be("true or false"),
    "port": _must_be("a number or a name"),
    "list_type": _must_be("a list"),
    **dict.fromkeys(("int_from_float", "int_parsing", "int_type"), _WHOLE),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _MAPPING),
}
"""What each of pydantic's kinds of error says, of the value that was given and the error's limits."""

_TYPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "object": (dict, "dict_type"),
    "array": (list, "list_type"),
    "string": (str, "string_type"),
    "integer": (int, "int_type"),
    "boolean": (bool, "bool_type"),
    "port": ((int, str), "port"),
}
"""What values of a type are here, and the kind of pydantic's error about one that is not."""


def repeated_entries(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Entries that have the keys of an earlier one, or equal an earlier one of a set. They may be anywhere in a value
    whose fields are each right by themselves."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from repeated_entries(item, part_of(schema, name), f"{path}.{name}")
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
