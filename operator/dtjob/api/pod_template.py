"""The parts of the manifest that are Kubernetes' own: pod templates, resources, volumes.

Typed only where dtjob reads, merges or refuses them; the rest is kept as it is.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from dtjob.api.block import Block, OpenBlock

TRAINING_CONTAINER = "tensorflow"
"""The container whose end decides about its task, as in TFJob."""

Quantity = int | Annotated[str, Field(max_length=64)]
"""A Kubernetes quantity: `4`, `500m`, `16Gi`."""

VOLUME_SOURCES = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
)
"""The volume sources of Kubernetes' API (core/v1 VolumeSource), all but gitRepo, which it no longer serves."""

_SOURCE_SCHEMA: dict[str, Any] = {"type": "object", "additionalProperties": True}
_NAME_SCHEMA = {"type": "string", "maxLength": 253, "description": "Refused: dtjob names the volume."}
VolumeSource = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {"type": "object", "properties": {"name": _NAME_SCHEMA, **dict.fromkeys(VOLUME_SOURCES, _SOURCE_SCHEMA)}}
    ),
]
"""A pod volume without its name: one source and its settings."""


class EnvVar(OpenBlock):
    """One environment variable, as in a container."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the variable."""


class Container(OpenBlock):
    """A container, as in a pod. The one named `tensorflow` trains; others are sidecars."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name of the container. `tensorflow` is the training container; leave it out to add sidecars only."""
    env: Annotated[list[EnvVar], Field(max_length=512)] | None = None
    """Environment variables. TF_CONFIG and names that begin with DTJOB_ are dtjob's own."""
    command: Annotated[list[str], Field(max_length=256)] | None = None
    """What to run. Not for the training container of a job with program."""
    args: Annotated[list[str], Field(max_length=256)] | None = None
    """Arguments of the command. Not for the training container of a job with program: use program.args."""
    resources: dict[str, Any] | None = None
    """Compute resources. For the training container, the replica's resources are the short way."""


class PodSpec(OpenBlock):
    """Any field of a pod's spec; merged under what dtjob sets."""

    hostname: Annotated[str, Field(max_length=253)] | None = None
    """Refused: dtjob gives every pod the host name that TF_CONFIG names."""
    subdomain: Annotated[str, Field(max_length=253)] | None = None
    """Refused: dtjob sets the name of the job's Service."""
    restart_policy: Annotated[str, Field(max_length=253)] | None = None
    """Refused: dtjob replaces pods itself; failurePolicy says how often."""
    containers: Annotated[list[Container], Field(max_length=16)] | None = None
    """Containers. The one named `tensorflow` is merged into the training container; others run beside it."""
    node_selector: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] | None = None
    """Labels that a node must have."""
    init_containers: Annotated[list[Container], Field(max_length=16)] | None = None
    """Init containers, run before training starts."""


class TemplateMetadata(Block):
    """Labels and annotations for the pods."""

    labels: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] | None = None
    """Labels added to each pod. Names under training.dtjob.dev/ are dtjob's own."""
    annotations: Annotated[dict[str, str], Field(max_length=64)] | None = None
    """Annotations added to each pod."""


class PodTemplate(Block):
    """A pod template that is merged under what dtjob makes."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations for the pods."""
    spec: PodSpec | None = None
    """Any field of a pod's spec, such as nodeSelector, tolerations, volumes or containers."""


class Resources(Block):
    """Compute resources of the training container."""

    limits: Annotated[dict[str, Quantity], Field(max_length=32)] | None = None
    """The most that the container may use, such as {nvidia.com/gpu: 1, memory: 16Gi}."""
    requests: Annotated[dict[str, Quantity], Field(max_length=32)] | None = None
    """What the scheduler sets aside for it, such as {cpu: 4, memory: 8Gi}."""
