# SPDX-License-Identifier: Apache-2.0
"""The definition as a JSON schema (draft 7), for editors and kubeconform.

It says what the fields are. The rules between fields are CEL, which a JSON schema cannot express.
"""

import json
from typing import Any

from dtjob.api.job import API_VERSION, KIND
from dtjob.crd.answers.schemas import schema_of
from dtjob.crd.definition import schema
from dtjob.crd.schema import INT_OR_STRING, LIST_TYPE, PRESERVE, Schema

_KEPT = (
    *("description", "default", "enum", "format", "minimum", "maximum", "minLength", "maxLength", "pattern"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "required"),
)
_INTEGERS = ("int32", "int64")
"""Formats of Kubernetes' that JSON schemas do not have."""

_BY_SERVER = "The API server sets it."
METADATA = {
    "name": "Name of the job: a DNS label, because host names begin with it. Example: digits-1.",
    "generateName": "Prefix of a name that the API server completes, if name is left out. Example: digits-.",
    "namespace": "Namespace of the job. kubectl uses the current one if left out.",
    "labels": "Labels, by which objects are selected.",
    "annotations": "Annotations, which hold any text.",
    "finalizers": "Names of controllers that have work to do before the object is removed.",
    "ownerReferences": "Objects that own this one.",
    "uid": f"Unique identifier. {_BY_SERVER}",
    "resourceVersion": f"Version of the stored object. {_BY_SERVER}",
    "generation": f"Number of the spec's version. {_BY_SERVER}",
    "creationTimestamp": f"Time of creation. {_BY_SERVER}",
    "deletionTimestamp": f"Time at which the object is to be removed. {_BY_SERVER}",
    "deletionGracePeriodSeconds": f"Seconds before the object is removed. {_BY_SERVER}",
    "managedFields": f"Owners of fields for server-side apply. {_BY_SERVER}",
}
"""Descriptions of the fields of metadata. The definition has none, as Kubernetes knows these fields."""


def json_schema() -> Schema:
    """The whole schema, for a manifest as a user writes it."""
    whole = schema()
    properties = {name: _draft7(part, name == "status") for name, part in whole["properties"].items()}
    properties["metadata"] = _draft7({**schema_of("ObjectMeta"), "nullable": False})
    properties["metadata"]["description"] = "Kubernetes' metadata of an object."
    for name, said in METADATA.items():
        properties["metadata"]["properties"][name] |= {"description": said}
    for name, value in (("apiVersion", API_VERSION), ("kind", KIND)):
        properties[name] |= {"const": value}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": KIND,
        "description": whole["description"],
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", *whole["required"]],
        "properties": properties,
        "additionalProperties": False,
    }


def text() -> str:
    """The file's content."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"


def _draft7(source: Schema, may_be_empty: bool = False) -> Schema:
    """One structural schema as draft 7 has it. `may_be_empty`: null is the same as no value."""
    nothing: list[Any] = [None] if may_be_empty or source.get("nullable") else []
    made: Schema = {key: source[key] for key in _KEPT if key in source and source[key] not in _INTEGERS}
    if types := _types(source):
        made["type"] = [*types, "null"] if nothing else types if len(types) > 1 else types[0]
    if "enum" in made:
        made["enum"] = [*made["enum"], *nothing]
    if source.get(LIST_TYPE) == "set":
        made["uniqueItems"] = True
    if "items" in source:
        made["items"] = _draft7(source["items"])
    if source.get("type") == "object":
        required = source.get("required", ())
        made["properties"] = {
            name: _draft7(part, name not in required) for name, part in source.get("properties", {}).items()
        }
        made["additionalProperties"] = _further(source)
    return made


def _types(source: Schema) -> list[str]:
    """The types of a value; none if it may be anything."""
    if source.get(INT_OR_STRING):
        return ["integer", "string"]
    return [source["type"]] if "type" in source else []


def _further(source: Schema) -> Any:
    """What fields beside the known ones may be."""
    further = source.get("additionalProperties")
    return _draft7(further, may_be_empty=True) if isinstance(further, dict) else bool(source.get(PRESERVE))
