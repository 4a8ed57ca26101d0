"""Kubernetes' own metadata, whole: the fields that an API server knows, and their types.

`dtjob validate` looks at a file with it. A job that is read from a cluster has `Metadata` (job.py), which takes what a
later Kubernetes may add.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dtjob.api.block import Block

_Given = Annotated[str, Field(min_length=1)]


class OwnerReference(Block):
    """Another object, with which this one is deleted."""

    api_version: _Given
    kind: _Given
    name: _Given
    uid: _Given
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFields(Block):
    """Who wrote which fields; a server notes it."""

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: str | None = None
    fields_type: str | None = None
    fields_v1: Annotated[dict[str, Any] | None, Field(alias="fieldsV1")] = None
    subresource: str | None = None


class ObjectMeta(Block):
    """An object's metadata: what a user writes, and what a server adds."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    managed_fields: list[ManagedFields] | None = None
    self_link: str | None = None
