# SPDX-License-Identifier: Apache-2.0
"""The cells of the reference page's tables: a field's type, its default and its description, in Markdown."""

import json
import re
from typing import Any

from dtjob.crd.schema import INT_OR_STRING, LIST_KEYS, LIST_TYPE, Schema

_PLURALS = {"string": "strings", "integer": "integers", "boolean": "booleans", "object": "objects"}
_EXAMPLE = re.compile(r"Example: (.+?)\.(?= |$)")
_STATED = re.compile(r"Defaults to (\S+)\.(?= |$)|(\w+) \(the default\)")
"""How a description says a default that the schema does not have, because it depends on another field."""
_NAME = re.compile(
    r"(?<![\w`/.:-])"
    r"(?:[a-z]{2,}[A-Z]\w*(?:\.\w+|\[\])*|[a-z]\w*(?:\[\])?(?:\.[a-z]\w*(?:\[\])?)+(?:/[\w-]*)?|[A-Z]+_[A-Z_]*|/[a-z][\w/-]*)"
    r"(?![\w`/-])"
)
"""Names of fields, files and variables in a sentence."""


def type_of(schema: Schema, link: str = "") -> str:
    """The type with its limits. `link` is the anchor of the section with the fields of a block or of its entries."""
    if schema.get("type") == "array":
        return _list(schema, link)
    if schema.get(INT_OR_STRING):
        return "integer or string"
    if choices := schema.get("enum"):
        return _choices(choices)
    if schema.get("format") == "date-time":
        return "time"
    kind = str(schema.get("type", "any"))
    if kind == "object":
        return _object(schema, link)
    least, most = ("minLength", "maxLength") if kind == "string" else ("minimum", "maximum")
    unit = " characters" if kind == "string" else ""
    return f"{kind}{_limits(schema.get(least), schema.get(most), unit)}"


def default_of(schema: Schema, required: bool) -> str:
    """The default that the API server fills in, or the one that the description names."""
    if required:
        return "required"
    if "default" in schema:
        return "" if isinstance(schema["default"], dict) else f"`{_plain(schema['default'])}`"
    stated = _STATED.search(schema.get("description", ""))
    return f"`{stated[1] or stated[2]}`" if stated else ""


def described(schema: Schema) -> str:
    """The description, with names and examples as code."""
    text = schema.get("description", "")
    parts = _EXAMPLE.split(text)
    for number, part in enumerate(parts):
        parts[number] = f"Example: `{part}`." if number % 2 else _NAME.sub(r"`\g<0>`", part)
    return "".join(parts)


def row(*cells: str) -> str:
    """One row of a table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _list(schema: Schema, link: str) -> str:
    items = schema["items"]
    if choices := items.get("enum"):
        of = f" of {_choices(choices)}"
    else:
        kind = _PLURALS.get(items.get("type", ""), "values")
        of = f" of [{kind}](#{link})" if link else f" of {kind}"
    limits = _limits(schema.get("minItems"), schema.get("maxItems"), " entries")
    if keys := schema.get(LIST_KEYS):
        limits += f", merged by {' and '.join(f'`{key}`' for key in keys)}"
    elif schema.get(LIST_TYPE) == "set":
        limits += ", each once"
    return f"list{of}{limits}"


def _object(schema: Schema, link: str) -> str:
    further = schema.get("additionalProperties")
    if isinstance(further, dict):
        kind = "integers or strings" if further.get(INT_OR_STRING) else _PLURALS.get(further.get("type", ""), "values")
        limits = _limits(None, schema.get("maxProperties"), " entries")
        return f"map of [{kind}](#{link}){limits}" if link else f"map of {kind}{limits}"
    return f"[object](#{link})" if link else "object"


def _limits(least: int | None, most: int | None, unit: str) -> str:
    if most is not None and most >= 2**31 - 1 and not unit:
        most = None  # the largest number that is stored, and no limit to anybody
    if unit == " characters" and least == 1:
        least = None  # not empty
    if least and most:
        return f", {least} to {most}{unit}"
    if most:
        return f", {'0 to' if least == 0 else 'at most'} {most}{unit}"
    return f", at least {least}{unit}" if least is not None else ""


def _choices(choices: list[str]) -> str:
    return ", ".join(f"`{_plain(choice)}`" for choice in choices)


def _plain(value: Any) -> str:
    """A value as YAML has it: text that would be read as something else is in quotes."""
    return value if isinstance(value, str) and value not in ("True", "False") else json.dumps(value)
