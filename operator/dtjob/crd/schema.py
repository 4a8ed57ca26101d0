# SPDX-License-Identifier: Apache-2.0
"""The manifest's models as a structural schema, the form of OpenAPI that a CRD takes.

Structural means: no $ref, no null, a type on everything, and nothing of JSON Schema that the API server does not know.
"""

from functools import cache
from typing import Any

from pydantic import BaseModel

from dtjob.api.job import Spec

Schema = dict[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
VALIDATIONS = "x-kubernetes-validations"
LIST_KEYS = "x-kubernetes-list-map-keys"
LIST_TYPE = "x-kubernetes-list-type"
QUANTITY = "quantity"
"""The format of a text or number that is a quantity."""
_KEPT = (
    *("type", "format", "description", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "required", "nullable", INT_OR_STRING),
    *(LIST_TYPE, LIST_KEYS),
)


@cache
def spec_schema() -> Schema:
    """The schema of `spec`. Treat as read only."""
    return structural(Spec)


def structural(model: type[BaseModel]) -> Schema:
    """The structural schema of one model, with every model that it names inlined."""
    whole = model.model_json_schema(by_alias=True)
    return _convert(whole, whole.get("$defs", {}))


def _convert(source: Schema, definitions: dict[str, Schema]) -> Schema:
    source = _resolve(source, definitions)
    result: Schema = {key: source[key] for key in _KEPT if key in source}
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    if "properties" in source:
        result["properties"] = {name: _convert(part, definitions) for name, part in source["properties"].items()}
    if "items" in source:
        result["items"] = _convert(source["items"], definitions)
    further = source.get("additionalProperties")
    if further is True:
        result[PRESERVE] = True
    elif isinstance(further, dict):
        result["additionalProperties"] = _convert(further, definitions)
    default = _default(source, result)
    return result if default is None else result | {"default": default}


def _resolve(source: Schema, definitions: dict[str, Schema]) -> Schema:
    """Follow a reference and see through `anyOf`; what stands beside them (the field's own description) wins."""
    if "$ref" in source:
        target = definitions[source["$ref"].rsplit("/", 1)[-1]]
        return _resolve({**target, **{key: value for key, value in source.items() if key != "$ref"}}, definitions)
    choices = [choice for choice in source.get("anyOf", []) if choice.get("type") != "null"]
    beside = {key: value for key, value in source.items() if key != "anyOf"}
    if len(choices) == 1:
        return _resolve({**choices[0], **beside}, definitions) if "$ref" in choices[0] else {**choices[0], **beside}
    if {choice.get("type") for choice in choices} == {"integer", "string"}:
        length = next((choice["maxLength"] for choice in choices if "maxLength" in choice), None)
        return beside | {INT_OR_STRING: True} | ({"maxLength": length} if length else {})
    if choices:
        raise ValueError(f"no structural schema for a choice between {choices}")
    return source


def _default(source: Schema, result: Schema) -> Any:
    """The default that the API server fills in; None: none.

    A block's default is written out from its fields' own: {} would do, but a rule is checked against it unfilled.
    """
    if "x-dtjob-default" in source or source.get("default") in (None, []):
        return None
    if "properties" in result:
        return {name: part["default"] for name, part in result["properties"].items() if "default" in part}
    return source["default"]
