"""Fields that a pod does not have: the definition of TFJob has the whole pod, so its API server prunes them."""

from __future__ import annotations

from typing import Any

from dtjob.cli.convert.fields import PRUNED, Fields
from dtjob.cli.convert.findings import CannotConvert, Findings
from dtjob.crd.field_errors import open_block_errors
from dtjob.crd.pod_schema import pod_spec_schema
from dtjob.crd.schema import PRESERVE, Schema


def without_unknown_fields(pod: Fields, path: str, said: Findings) -> Fields:
    """A pod's spec without the fields that no pod has, with a warning for each. Raises CannotConvert for a value of
    another type."""
    found: Fields = _pruned(pod, pod_spec_schema(), path, said)
    if wrong := next(open_block_errors(found, pod_spec_schema(), path), None):
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
