# SPDX-License-Identifier: Apache-2.0
"""The claim that a job brings for its checkpoints: the manifest's `checkpoint.storage.volumeClaimTemplate`."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block, OpenBlock
from dtjob.api.spec.pod_template import Quantity


class Retention(StrEnum):
    """What happens to the claim when the job is deleted."""

    RETAIN = "Retain"
    DELETE = "Delete"


class AccessMode(StrEnum):
    """How many nodes or pods may mount a volume."""

    ONCE = "ReadWriteOnce"
    ONCE_POD = "ReadWriteOncePod"
    MANY = "ReadWriteMany"
    READ_MANY = "ReadOnlyMany"


class ClaimMetadata(Block):
    """Labels and annotations of the claim."""

    labels: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] | None = None
    """Labels of the claim. Names under training.dtjob.dev/ and app.kubernetes.io/managed-by are refused."""
    annotations: Annotated[dict[str, str], Field(max_length=64)] | None = None
    """Annotations of the claim."""


class ClaimResources(Block):
    """Size of the volume."""

    requests: Annotated[dict[str, Quantity], Field(max_length=4)]
    """Size of the volume. Example: {storage: 10Gi}."""
    limits: Annotated[dict[str, Quantity], Field(max_length=4)] | None = None
    """Largest size of the volume."""


class ClaimSpec(OpenBlock):
    """Spec of a PersistentVolumeClaim. It may set any field of one, such as storageClassName."""

    access_modes: Annotated[list[AccessMode], Field(min_length=1, max_length=4)]
    """Access modes. ReadWriteOnce suits mountOn: Chief. Pods on several nodes need ReadWriteMany."""
    resources: ClaimResources
    """Size of the volume. Example: {requests: {storage: 10Gi}}."""
    volume_mode: Annotated[str, Field(max_length=63)] | None = None
    """Filesystem, the default. Block is refused."""


class VolumeClaimTemplate(Block):
    """PersistentVolumeClaim of the job."""

    metadata: ClaimMetadata | None = None
    """Labels and annotations of the claim."""
    spec: ClaimSpec
    """Spec of the claim. Example: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}."""
