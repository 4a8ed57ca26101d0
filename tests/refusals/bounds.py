# SPDX-License-Identifier: Apache-2.0
"""For each field of the schema, a manifest that passes each of its bounds: another type, a value too small, too long,
none of the values, a part that is missing, a part that is unknown. Made from the schema, so that no field is forgotten.

Left to the rows by hand: the templates, volumes and resources, which are Kubernetes' own, and the roles beside worker,
which have the same fields.
"""

from collections.abc import Iterator
from typing import Any

from dtjob.crd.schema import INT_OR_STRING, PRESERVE, Schema, spec_schema
from tests.refusals.manifests import Bad, bad, job

Path = tuple[str, ...]
ITEM = "[0]"
BY_HAND = {"template", "resources", "volume", "chief", "ps", "evaluator"}
_OTHER_TYPE: dict[str, Any] = {"object": "text", "array": "text", "string": 7, "boolean": "yes", "integer": "1"}
_SAID_OF_TYPE = {
    "object": "must be a mapping",
    "array": "must be a list",
    "string": "must be text",
    "boolean": "must be true or false",
    "integer": "must be a whole number",
}


def field(path: Path) -> str:
    """The path as refusals write it."""
    return ".".join(("spec", *path)).replace(f".{ITEM}", ITEM)


def manifest(path: Path, value: Any) -> dict[str, Any]:
    """A job with nothing but this at the path, below the field of the spec where it begins."""
    for name in reversed(path[1:]):
        value = [value] if name == ITEM else {name: value}
    return job(**{path[0]: value})


def fields(schema: Schema, path: Path = ()) -> Iterator[tuple[Path, Schema]]:
    """Each field below, with its schema."""
    for name, part in schema.get("properties", {}).items():
        if name not in BY_HAND:
            yield (*path, name), part
            yield from fields(part, (*path, name))
    if "items" in schema:
        yield (*path, ITEM), schema["items"]
        yield from fields(schema["items"], (*path, ITEM))


def _values(schema: Schema) -> Iterator[tuple[str, Any, str, str]]:
    """Bound, a value that passes it, what the API server says of it, what `problems` does."""
    kind, choices = schema.get("type", ""), schema.get("enum")
    one_of = f"must be one of {choices[0]}" if choices else ""
    if not schema.get(INT_OR_STRING):
        yield "type", _OTHER_TYPE[kind], f"must be of type {kind}", one_of or _SAID_OF_TYPE[kind]
    if choices:
        yield "enum", "Other", f'supported values: "{choices[0]}"', one_of
    for bound, step, said in (("minimum", -1, "greater"), ("maximum", 1, "less")):
        if (limit := schema.get(bound)) is not None:
            words = "at least" if step < 0 else "at most"
            yield bound, limit + step, f"should be {said} than or equal to {limit}", f"must be {words} {limit}"
    if limit := schema.get("minLength"):
        yield "minLength", "", f"should be at least {limit} chars", "must not be empty"
    if (limit := schema.get("maxLength")) and kind == "string":
        yield "maxLength", "a" * (limit + 1), f"may not be more than {limit} bytes", f"must have at most {limit} "
    if limit := schema.get("minItems"):
        yield "minItems", [], f"should have at least {limit} items", f"must have at least {limit} entr"
    if limit := schema.get("maxItems"):
        item = schema["items"]
        found = [{} if item["type"] == "object" else f"a{number}" for number in range(limit + 1)]
        yield (
            "maxItems",
            [0] * (limit + 1) if item["type"] == "integer" else found,
            f"must have at most {limit} items",
            f"must have at most {limit} entries",
        )


def _rows(path: Path, schema: Schema) -> Iterator[Bad]:
    name = ".".join(path)
    for bound, value, said, or_said in _values(schema):
        yield bad(f"{bound}-of-{name}", manifest(path, value), field(path), said, or_says=(field(path), or_said))
    for missing in schema.get("required", ()):
        where = field((*path, missing))
        yield bad(
            f"{name}-without-{missing}",
            manifest(path, {}),
            f"{where}: Required value",
            or_says=(f"{where}: is required; add it",),
        )
    if "properties" in schema and not schema.get(PRESERVE):
        where = field((*path, "noSuchField"))
        yield bad(
            f"{name}-with-an-unknown-field",
            manifest(path, {"noSuchField": 1}),
            f'unknown field "{where}"',
            or_says=(f"{where}: is an unknown field",),
        )


BOUNDS = [row for path, schema in fields(spec_schema()) for row in _rows(path, schema)]
