# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' own metadata: all fields that an API server knows, and their types.

`dtjob validate` checks a file with it, and the JSON schema for editors contains it. A job from a cluster has `Metadata`
(job.py), which accepts fields of later versions of Kubernetes.
"""

from typing import Annotated, Any

from pydantic import Field

from dtjob.api.block import Block

_Given = Annotated[str, Field(min_length=1)]


class OwnerReference(Block):
    """Object that owns this one. Kubernetes deletes this object after its owners."""

    api_version: _Given
    """API version of the owner."""
    kind: _Given
    """Kind of the owner."""
    name: _Given
    """Name of the owner."""
    uid: _Given
    """UID of the owner."""
    controller: bool | None = None
    """Whether the owner is the controller of this object. At most one owner is."""
    block_owner_deletion: bool | None = None
    """Whether a foreground deletion of the owner waits for this object."""


class ManagedFields(Block):
    """Fields that one manager owns. The API server writes it."""

    manager: str | None = None
    """Name of the manager."""
    operation: str | None = None
    """Apply or Update."""
    api_version: str | None = None
    """API version of the fields."""
    time: str | None = None
    """Time of the last change."""
    fields_type: str | None = None
    """Format of the fields: FieldsV1."""
    fields_v1: Annotated[dict[str, Any] | None, Field(alias="fieldsV1")] = None
    """The fields."""
    subresource: str | None = None
    """Subresource through which the fields were written."""


class ObjectMeta(Block):
    """Kubernetes' metadata of an object."""

    name: str | None = None
    """Name of the job: a DNS label, because host names begin with it. Example: digits-1."""
    generate_name: str | None = None
    """Prefix of a name that the API server completes, if name is left out. Example: digits-."""
    namespace: str | None = None
    """Namespace of the job. kubectl uses the current one if left out."""
    labels: dict[str, str] | None = None
    """Labels, by which objects are selected."""
    annotations: dict[str, str] | None = None
    """Annotations, which hold any text."""
    finalizers: list[str] | None = None
    """Names of controllers that have work to do before the object is removed."""
    owner_references: list[OwnerReference] | None = None
    """Objects that own this one."""
    uid: str | None = None
    """Unique identifier. The API server sets it."""
    resource_version: str | None = None
    """Version of the stored object. The API server sets it."""
    generation: int | None = None
    """Number of the spec's version. The API server sets it."""
    creation_timestamp: str | None = None
    """Time of creation. The API server sets it."""
    deletion_timestamp: str | None = None
    """Time at which the object is to be removed. The API server sets it."""
    deletion_grace_period_seconds: int | None = None
    """Seconds before the object is removed. The API server sets it."""
    managed_fields: list[ManagedFields] | None = None
    """Owners of fields for server-side apply. The API server sets it."""
    self_link: str | None = None
    """Deprecated by Kubernetes and without effect."""
