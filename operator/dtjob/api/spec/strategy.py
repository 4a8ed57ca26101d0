# SPDX-License-Identifier: Apache-2.0
"""The manifest's `strategy` and `strategyOptions`."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block
from dtjob.api.spec.replica_specs import MAX_REPLICAS

TPU_RESOURCE = "google.com/tpu"
"""Name of the resource by which a container requests the chips of its node's TPU."""
LOCAL_TPU = "local"
"""The address of the TPU of the pod's own node."""


class Strategy(StrEnum):
    """The `tf.distribute` strategies."""

    DEFAULT = "Default"
    ONE_DEVICE = "OneDevice"
    MIRRORED = "Mirrored"
    CENTRAL_STORAGE = "CentralStorage"
    MULTI_WORKER_MIRRORED = "MultiWorkerMirrored"
    PARAMETER_SERVER = "ParameterServer"
    TPU = "TPU"

    @property
    def single_pod(self) -> bool:
        """Whether one process trains alone. Then a job has a chief, perhaps an evaluator, and no other role."""
        return self not in (Strategy.MULTI_WORKER_MIRRORED, Strategy.PARAMETER_SERVER)


class Communication(StrEnum):
    """How MultiWorkerMirrored tasks reduce gradients."""

    AUTO = "Auto"
    RING = "Ring"
    NCCL = "NCCL"


class CrossDeviceOps(StrEnum):
    """How Mirrored reduces gradients between the devices of one pod."""

    NCCL = "NCCL"
    HIERARCHICAL_COPY = "HierarchicalCopy"
    REDUCTION_TO_ONE_DEVICE = "ReductionToOneDevice"


class Partitioner(Block):
    """Splits floating-point variables into shards of rows, for the parameter servers: set exactly one of fixedShards,
    minShardBytes and maxShardBytes."""

    fixed_shards: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = None
    """Number of shards of each variable. A variable with fewer rows has one shard for each row."""
    min_shard_bytes: Annotated[int, Field(ge=1)] | None = None
    """Smallest size of a shard in bytes. Example: 262144."""
    max_shard_bytes: Annotated[int, Field(ge=1)] | None = None
    """Largest size of a shard in bytes. If maxShards allows too few shards, they are larger."""
    max_shards: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = None
    """Most shards of one variable. If left out, it is the number of parameter servers with minShardBytes, and no limit
    with maxShardBytes."""


class Tpu(Block):
    """TPU that strategy TPU trains on: a slice of one host."""

    address: Annotated[str, Field(min_length=1, max_length=253)] = LOCAL_TPU
    """Name or grpc:// address of a Cloud TPU, or local (the default): the TPU of the pod's own node."""
    accelerator: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Kind of TPU: the value of the node label cloud.google.com/gke-tpu-accelerator. Example: tpu-v5-lite-podslice. The
    pod is not bound to a kind if left out."""
    topology: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Shape of the slice: the value of the node label cloud.google.com/gke-tpu-topology. Example: 2x2. The chief's pod
    requests all chips of the slice (google.com/tpu)."""


class StrategyOptions(Block):
    """Options of the strategy."""

    communication: Communication | None = None
    """Way in which tasks of MultiWorkerMirrored sum gradients. Auto (the default): TensorFlow chooses, which is Ring
    even on GPUs. Ring: over gRPC. NCCL: needs a GPU for each task."""
    cross_device_ops: CrossDeviceOps | None = None
    """Way in which Mirrored sums gradients between devices. NCCL needs GPUs. TensorFlow chooses if left out."""
    logical_cpus: Annotated[int | None, Field(ge=1, le=64, alias="logicalCPUs")] = None
    """Number of devices into which OneDevice, Mirrored or CentralStorage splits the CPU, to try a job without GPUs. The
    CPU is one device if left out."""
    device: Annotated[str, Field(max_length=16)] | None = None
    """Device on which OneDevice trains. Example: GPU:0. Defaults to the first GPU, or to the CPU if there is none."""
    partitioner: Partitioner | None = None
    """Splits large variables of ParameterServer into shards. If left out, each variable is on one parameter server."""
    tpu: Tpu | None = None
    """TPU that strategy TPU trains on. If left out, it is the TPU of the pod's own node."""
