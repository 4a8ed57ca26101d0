# SPDX-License-Identifier: Apache-2.0
"""The parts of the manifest that are Kubernetes' own: pod templates, resources, volumes.

Typed only where dtjob reads, merges or refuses them; the rest is kept as it is.
"""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from dtjob.api import names
from dtjob.api.block import Block, OpenBlock, list_map

TRAINING_CONTAINER = names.TRAINING_CONTAINER

CHECKPOINT_VOLUME = "checkpoints"
CLUSTER_VOLUME = "dtjob-cluster"
SHARED_MEMORY_VOLUME = "dtjob-shm"
SOURCE_VOLUME = "dtjob-source"
"""Names of the volumes that dtjob adds."""

Quantity = int | Annotated[str, Field(max_length=64)]
"""A Kubernetes quantity: `4`, `500m`, `16Gi`."""


def keyed(*keys: str, most: int) -> Any:
    """The mark of a list that server-side apply merges by these fields of its items. Two items never have the same."""
    return Field(max_length=most, json_schema_extra=list_map(*keys))


class EnvVar(OpenBlock):
    """Environment variable."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the variable."""
    value: Annotated[str, Field(max_length=131072)] | None = None
    """Value of the variable. Put numbers, true and false in quotes."""


Environment = Annotated[list[EnvVar], keyed("name", most=512)]


class NamedSource(OpenBlock):
    """Secret or ConfigMap of which each key is a variable."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the object, in the namespace of the job."""


class EnvFromSource(OpenBlock):
    """Variables from the keys of a Secret or a ConfigMap."""

    secret_ref: NamedSource | None = None
    """Secret. Example: {name: wandb}."""
    config_map_ref: NamedSource | None = None
    """ConfigMap. Example: {name: settings}."""


class ContainerPort(OpenBlock):
    """Port of the container."""

    container_port: Annotated[int, Field(ge=1, le=65535)]
    """Number of the port."""
    protocol: Annotated[str, Field(max_length=4)] = "TCP"
    """TCP, UDP or SCTP. Defaults to TCP."""


class VolumeMount(OpenBlock):
    """Mount of a volume."""

    name: Annotated[str, Field(max_length=253)]
    """Name of the volume."""
    mount_path: Annotated[str, Field(min_length=1, max_length=4096)]
    """Path in the container."""


class VolumeDevice(OpenBlock):
    """Block device of the container."""

    device_path: Annotated[str, Field(min_length=1, max_length=4096)]
    """Path in the container."""


class Sleep(Block):
    """Pause before SIGTERM."""

    seconds: Annotated[int, Field(ge=0, le=86400)]
    """Length of the pause in seconds."""


class PreStop(OpenBlock):
    """Hook that runs before SIGTERM."""

    sleep: Sleep | None = None
    """Pause before SIGTERM. dtjob adds it to the grace period if the template sets none."""


class Lifecycle(OpenBlock):
    """Hooks of the container."""

    pre_stop: PreStop | None = None
    """Hook that runs before SIGTERM. Only sleep is allowed in container tensorflow if a program saves checkpoints."""


_OPEN = WithJsonSchema({"type": "object", "additionalProperties": True})
"""Only dtjob checks what this block contains, and reports errors in the job's status. The definition has the block
eight times and would be too large with its fields."""


class ContainerResources(OpenBlock):
    """Compute resources of a container of the template."""

    limits: dict[str, Any] | None = None
    """Most that the container may use."""
    requests: dict[str, Any] | None = None
    """Resources that the scheduler reserves."""


class Capabilities(OpenBlock):
    """Capabilities of a container."""

    add: list[str] | None = None
    """Capabilities that are added."""
    drop: list[str] | None = None
    """Capabilities that are dropped. dtjob drops ALL if this is left out."""


class ContainerSecurity(OpenBlock):
    """Security options of a container."""

    capabilities: Capabilities | None = None
    """Capabilities of the container."""


class Container(OpenBlock):
    """Container of the pod."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name of the container."""
    image: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Image. Required, except in container tensorflow, where it is refused if spec.image is set."""
    env: Environment | None = None
    """Environment variables. Names that begin with DTJOB_ are refused. In container tensorflow, TF_CONFIG replaces
    dtjob's; it is refused if program is set."""
    command: Annotated[list[str], Field(max_length=256)] | None = None
    """Command. Defaults to the image's. Refused in container tensorflow if program is set."""
    args: Annotated[list[str], Field(max_length=256)] | None = None
    """Arguments. Refused in container tensorflow if program is set: use program.args."""
    resources: Annotated[ContainerResources, _OPEN] | None = None
    """Compute resources. Refused in container tensorflow if the role sets resources."""
    ports: Annotated[list[ContainerPort], keyed("containerPort", "protocol", most=64)] | None = None
    """Ports. dtjob adds its own to container tensorflow."""
    volume_mounts: Annotated[list[VolumeMount], keyed("mountPath", most=64)] | None = None
    """Mounts of volumes."""
    volume_devices: Annotated[list[VolumeDevice], keyed("devicePath", most=64)] | None = None
    """Block devices."""
    lifecycle: Lifecycle | None = None
    """What it does at its begin and end."""
    termination_message_path: Annotated[str, Field(max_length=4096)] | None = None
    """File of the termination message. Defaults to /dev/termination-log."""
    security_context: Annotated[ContainerSecurity, _OPEN] | None = None
    """Security options, merged over those that dtjob sets."""


class Volume(OpenBlock):
    """Volume of the pod."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name of the volume."""


class ByName(OpenBlock):
    """Entry with a name."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the entry."""


class HostAlias(OpenBlock):
    """Line of the hosts file."""

    ip: Annotated[str, Field(max_length=64)]
    """IP address."""


class TopologySpread(OpenBlock):
    """Constraint on how pods are spread."""

    topology_key: Annotated[str, Field(max_length=317)]
    """Key of the node label. Nodes with one value of it form a domain."""
    when_unsatisfiable: Annotated[str, Field(max_length=63)]
    """DoNotSchedule or ScheduleAnyway."""


class PodAffinity(OpenBlock):
    """Affinity to other pods."""

    required_during_scheduling_ignored_during_execution: list[dict[str, Any]] | None = None
    """Terms that must be met."""
    preferred_during_scheduling_ignored_during_execution: list[dict[str, Any]] | None = None
    """Terms that should be met."""


class Affinity(OpenBlock):
    """Affinity of the pods."""

    pod_affinity: PodAffinity | None = None
    """Affinity to other pods. scheduling.topology adds terms."""


class PodSpec(OpenBlock):
    """Spec of the pods. It may set any field of a pod that dtjob does not set itself."""

    hostname: Annotated[str, Field(max_length=253)] | None = None
    """Refused: dtjob sets the host name that TF_CONFIG has."""
    subdomain: Annotated[str, Field(max_length=253)] | None = None
    """Refused: dtjob sets the name of the job's Service."""
    restart_policy: Annotated[str, Field(max_length=253)] | None = None
    """Refused: dtjob replaces failed pods itself, as failurePolicy says."""
    termination_grace_period_seconds: Annotated[int, Field(ge=0)] | None = None
    """Seconds from the deletion of the pod to SIGKILL. Defaults to checkpoint.saveTimeoutSeconds, or to 30 without
    checkpoint. A smaller value than that timeout is refused if a program saves checkpoints."""
    priority_class_name: Annotated[str, Field(max_length=253)] | None = None
    """PriorityClass of this role's pods. Refused if scheduling.priorityClassName is set."""
    containers: Annotated[list[Container], keyed("name", most=16)] | None = None
    """Containers. The one named tensorflow is merged into the training container; the others run beside it. Leave it
    out to add only others."""
    node_selector: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] | None = None
    """Labels that a node must have."""
    init_containers: Annotated[list[Container], keyed("name", most=16)] | None = None
    """Containers that run before the others start."""
    volumes: Annotated[list[Volume], keyed("name", most=64)] | None = None
    """Volumes. dtjob adds its own."""
    image_pull_secrets: Annotated[list[ByName], keyed("name", most=16)] | None = None
    """Secrets for pulling images."""
    host_aliases: Annotated[list[HostAlias], keyed("ip", most=64)] | None = None
    """Lines of the hosts file."""
    resource_claims: Annotated[list[ByName], keyed("name", most=64)] | None = None
    """ResourceClaims of the pod."""
    scheduling_gates: Annotated[list[ByName], keyed("name", most=16)] | None = None
    """Gates that hold back scheduling."""
    topology_spread_constraints: (
        Annotated[list[TopologySpread], keyed("topologyKey", "whenUnsatisfiable", most=16)] | None
    ) = None
    """Constraints on how pods are spread over nodes."""
    affinity: Annotated[Affinity, _OPEN] | None = None
    """Affinity of the pods."""
    tolerations: list[dict[str, Any]] | None = None
    """Taints that the pods tolerate. dtjob adds tolerations for lost nodes and GPUs."""
    security_context: dict[str, Any] | None = None
    """Security options of the pod, merged over those that dtjob sets."""
    overhead: dict[str, Any] | None = None
    """Resources that the RuntimeClass adds."""


class TemplateMetadata(Block):
    """Labels and annotations of the pods."""

    labels: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] | None = None
    """Labels of each pod. Names under training.dtjob.dev/ and app.kubernetes.io/managed-by are refused."""
    annotations: Annotated[dict[str, str], Field(max_length=64)] | None = None
    """Annotations of each pod."""


class PodTemplate(Block):
    """Pod template of a role."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the pods."""
    spec: PodSpec | None = None
    """Spec of the pods. It may set any field of a pod that dtjob does not set itself. Example: {nodeSelector: {disk:
    ssd}}."""


class Resources(Block):
    """Compute resources of the training container."""

    limits: Annotated[dict[str, Quantity], Field(max_length=32)] | None = None
    """Most that the container may use. Example: {nvidia.com/gpu: 1, memory: 16Gi}."""
    requests: Annotated[dict[str, Quantity], Field(max_length=32)] | None = None
    """Resources that the scheduler reserves. Defaults to limits. Example: {cpu: 4, memory: 8Gi}."""
