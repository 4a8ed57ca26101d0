# SPDX-License-Identifier: Apache-2.0
"""Reads blocks of a TFJob by type, and says which fields kubeflow.org/v1 does not have."""

from collections.abc import Collection, Sequence
from typing import Any

from dtjob.cli.convert.findings import CannotConvert, Findings
from dtjob.crd.answers.field_errors import open_block_errors
from dtjob.crd.answers.pod_schema import schema_of
from dtjob.crd.schema import PRESERVE, Schema

Fields = dict[str, Any]

PRUNED = "kubeflow.org/v1 has no such field here, so its API server prunes it and it has no effect; it is left out"


def mapping(value: Any, path: str) -> Fields:
    """The block at this path, empty if it is left out. Raises CannotConvert if it is no mapping."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CannotConvert(f"{path}: must be a mapping")
    return value


def items(value: Any, path: str) -> list[Any]:
    """The list at this path, empty if it is left out. Raises CannotConvert if it is no list."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise CannotConvert(f"{path}: must be a list")
    return value


def number(value: Any, path: str) -> int | None:
    """The whole number at this path, None if it is left out. Raises CannotConvert if it is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise CannotConvert(f"{path}: must be a whole number, not {value!r}")
    return value


def choice(value: Any, path: str, known: Collection[str]) -> str | None:
    """The word at this path, None if it is left out. Raises CannotConvert if it is none of `known`."""
    if value is None or (value == "" and "" not in known):
        return None
    if value not in known:
        raise CannotConvert(f"{path}: must be one of {', '.join(known)}, not {value!r}")
    return str(value)


def word(value: Any, path: str, known: Sequence[str], otherwise: str, said: Findings) -> str | None:
    """The word at this path, None if it is left out. The definition of TFJob takes any text, and its operator reads
    every text that is none of `known` as `otherwise`. Raises CannotConvert for what is no text."""
    if value in (None, ""):
        return None
    if not isinstance(value, str):
        raise CannotConvert(f"{path}: must be text, not {value!r}")
    if value in known:
        return value
    said.warn(path, f"{value!r} is none of {', '.join(known)}; TFJob reads it as {otherwise}, and so is the result")
    return otherwise


def warn_of_others(block: Fields, path: str, known: Collection[str], said: Findings) -> None:
    """A warning for each field of the block that is not `known`."""
    for name in block:
        if name not in known:
            said.warn(f"{path}.{name}".lstrip("."), PRUNED)


def without_nulls(value: Any) -> Any:
    """The value without fields that are null, which Kubernetes takes as left out."""
    if isinstance(value, dict):
        return {str(name): without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


def without_unknown_fields(pod: Fields, path: str, said: Findings) -> Fields:
    """A pod's spec without the fields that no pod has, with a warning for each. Raises CannotConvert for a value of
    another type."""
    found: Fields = _pruned(pod, schema_of("PodSpec"), path, said)
    if wrong := next(open_block_errors(found, schema_of("PodSpec"), path), None):
        raise CannotConvert(str(wrong))
    return found


def _pruned(value: Any, schema: Schema, path: str, said: Findings) -> Any:
    if isinstance(value, list):
        return [_pruned(item, schema.get("items", {}), f"{path}[{at}]", said) for at, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    known, further = schema.get("properties", {}), schema.get("additionalProperties")
    found = {}
    for name, item in value.items():
        if known and name not in known and not isinstance(further, dict) and PRESERVE not in schema:
            said.warn(f"{path}.{name}", PRUNED)
        else:
            found[name] = _pruned(item, known.get(name, further) or {}, f"{path}.{name}", said)
    return found
