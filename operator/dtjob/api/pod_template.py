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


def keyed(*keys: str, most: int) -> Any:
    """What makes a list one that server-side apply merges by these fields of its items, each of which it has once."""
    merged: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return Field(max_length=most, json_schema_extra=merged)


class EnvVar(OpenBlock):
    """One environment variable, as in a container."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the variable."""
    value: Annotated[str, Field(max_length=131072)] | None = None
    """Its value: text, so put numbers, true and false in quotes."""


Environment = Annotated[list[EnvVar], keyed("name", most=512)]


class ContainerPort(OpenBlock):
    """A port, as in a container."""

    container_port: Annotated[int, Field(ge=1, le=65535)]
    """Number of the port."""
    protocol: Annotated[str, Field(max_length=4)] = "TCP"
    """TCP, UDP or SCTP."""


class VolumeMount(OpenBlock):
    """A volume's place in a container."""

    name: Annotated[str, Field(max_length=253)]
    """Name of the volume."""
    mount_path: Annotated[str, Field(min_length=1, max_length=4096)]
    """Where it is mounted."""


class VolumeDevice(OpenBlock):
    """A block device of a container."""

    device_path: Annotated[str, Field(min_length=1, max_length=4096)]
    """Where it is."""


class Sleep(Block):
    """A pause."""

    seconds: Annotated[int, Field(ge=0, le=86400)]
    """Its length."""


class PreStop(OpenBlock):
    """What a container does before it gets SIGTERM."""

    sleep: Sleep | None = None
    """A pause. dtjob adds its seconds to the grace period, where the template has none."""


class Lifecycle(OpenBlock):
    """What a container does at its begin and end."""

    pre_stop: PreStop | None = None
    """What it does before it gets SIGTERM. In the training container only sleep, where a program saves checkpoints."""


_OPEN = WithJsonSchema({"type": "object", "additionalProperties": True})
"""What is checked by dtjob alone and answered in the job's status: the definition has to fit an annotation, and has
these eight times."""


class ContainerResources(OpenBlock):
    """Compute resources of a container of the template."""

    limits: dict[str, Any] | None = None
    """The most that the container may use."""
    requests: dict[str, Any] | None = None
    """What the scheduler sets aside for it."""


class Capabilities(OpenBlock):
    """Capabilities of a container."""

    add: list[str] | None = None
    """Those that it gets."""
    drop: list[str] | None = None
    """Those that it loses, beside the ones that dtjob takes away."""


class ContainerSecurity(OpenBlock):
    """What a container may do."""

    capabilities: Capabilities | None = None
    """Its capabilities."""


class Container(OpenBlock):
    """A container, as in a pod. The one named `tensorflow` trains; others are sidecars."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name of the container. `tensorflow` is the training container; leave it out to add sidecars only."""
    image: Annotated[str, Field(max_length=1024)] | None = None
    """Its image. Of the training container spec.image is the short way."""
    env: Environment | None = None
    """Environment variables. Names that begin with DTJOB_ are dtjob's own, and with program TF_CONFIG is too; without
    program, a TF_CONFIG that stands here is taken in place of dtjob's."""
    command: Annotated[list[str], Field(max_length=256)] | None = None
    """What to run. Not for the training container of a job with program."""
    args: Annotated[list[str], Field(max_length=256)] | None = None
    """Arguments of the command. Not for the training container of a job with program: use program.args."""
    resources: Annotated[ContainerResources, _OPEN] | None = None
    """Compute resources. For the training container, the replica's resources are the short way."""
    ports: Annotated[list[ContainerPort], keyed("containerPort", "protocol", most=64)] | None = None
    """Ports, beside those that dtjob adds to the training container."""
    volume_mounts: Annotated[list[VolumeMount], keyed("mountPath", most=64)] | None = None
    """Where volumes are mounted."""
    volume_devices: Annotated[list[VolumeDevice], keyed("devicePath", most=64)] | None = None
    """Block devices."""
    lifecycle: Lifecycle | None = None
    """What it does at its begin and end."""
    termination_message_path: Annotated[str, Field(max_length=4096)] | None = None
    """Where it leaves its last words; /dev/termination-log where left out."""
    security_context: Annotated[ContainerSecurity, _OPEN] | None = None
    """What it may do, merged over what dtjob sets."""


class Volume(OpenBlock):
    """A volume, as in a pod."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name of the volume."""


class ByName(OpenBlock):
    """An entry with a name."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """The name."""


class HostAlias(OpenBlock):
    """A line of the pod's hosts file."""

    ip: Annotated[str, Field(max_length=64)]
    """The address."""


class TopologySpread(OpenBlock):
    """How pods are spread."""

    topology_key: Annotated[str, Field(max_length=317)]
    """Label of the nodes that are told apart."""
    when_unsatisfiable: Annotated[str, Field(max_length=63)]
    """DoNotSchedule or ScheduleAnyway."""


class PodAffinity(OpenBlock):
    """Near which pods a pod is placed."""

    required_during_scheduling_ignored_during_execution: list[dict[str, Any]] | None = None
    """Terms that must hold."""
    preferred_during_scheduling_ignored_during_execution: list[dict[str, Any]] | None = None
    """Terms that should hold."""


class Affinity(OpenBlock):
    """Where a pod is placed."""

    pod_affinity: PodAffinity | None = None
    """Near which pods. scheduling.topology adds to it."""


class PodSpec(OpenBlock):
    """Any field of a pod's spec; merged under what dtjob sets."""

    hostname: Annotated[str, Field(max_length=253)] | None = None
    """Refused: dtjob gives every pod the host name that TF_CONFIG names."""
    subdomain: Annotated[str, Field(max_length=253)] | None = None
    """Refused: dtjob sets the name of the job's Service."""
    restart_policy: Annotated[str, Field(max_length=253)] | None = None
    """Refused: dtjob replaces pods itself; failurePolicy says how often."""
    termination_grace_period_seconds: Annotated[int, Field(ge=0)] | None = None
    """Seconds from the pod's deletion to SIGKILL; checkpoint.saveTimeoutSeconds where left out, and at least that."""
    priority_class_name: Annotated[str, Field(max_length=253)] | None = None
    """PriorityClass of this role's pods, instead of scheduling.priorityClassName."""
    containers: Annotated[list[Container], keyed("name", most=16)] | None = None
    """Containers. The one named `tensorflow` is merged into the training container; others run beside it."""
    node_selector: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] | None = None
    """Labels that a node must have."""
    init_containers: Annotated[list[Container], keyed("name", most=16)] | None = None
    """Init containers, run before training starts."""
    volumes: Annotated[list[Volume], keyed("name", most=64)] | None = None
    """Volumes, beside those that dtjob adds."""
    image_pull_secrets: Annotated[list[ByName], keyed("name", most=16)] | None = None
    """Secrets with which images are pulled."""
    host_aliases: Annotated[list[HostAlias], keyed("ip", most=64)] | None = None
    """Lines for the hosts file."""
    resource_claims: Annotated[list[ByName], keyed("name", most=64)] | None = None
    """Claims of devices."""
    scheduling_gates: Annotated[list[ByName], keyed("name", most=16)] | None = None
    """What holds scheduling back."""
    topology_spread_constraints: (
        Annotated[list[TopologySpread], keyed("topologyKey", "whenUnsatisfiable", most=16)] | None
    ) = None
    """How pods are spread over nodes."""
    affinity: Annotated[Affinity, _OPEN] | None = None
    """Where the pods are placed."""
    tolerations: list[dict[str, Any]] | None = None
    """Taints of nodes that the pods tolerate, beside those that dtjob adds for lost nodes."""
    security_context: dict[str, Any] | None = None
    """What all containers may do, merged over what dtjob sets."""
    overhead: dict[str, Any] | None = None
    """What the pods' RuntimeClass takes."""


class TemplateMetadata(Block):
    """Labels and annotations for the pods."""

    labels: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] | None = None
    """Labels added to each pod. Names under training.dtjob.dev/ and app.kubernetes.io/managed-by are dtjob's own."""
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
