# SPDX-License-Identifier: Apache-2.0
"""The schema of `status`, from its models. The API server fills in no default there: only the operator writes it."""

from __future__ import annotations

from dtjob.api.status.status import Status
from dtjob.crd.schema import PRESERVE, Schema, structural


def status_schema() -> Schema:
    """The schema of a job's status."""
    made = structural(Status)
    _drop_defaults(made)
    # Unstable: nobody is to read it, so nothing of it is described.
    about = made["properties"]["internal"]["description"]
    made["properties"]["internal"] = {"type": "object", "description": about, PRESERVE: True}
    return made


def _drop_defaults(schema: Schema) -> None:
    schema.pop("default", None)
    for part in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            _drop_defaults(part)
