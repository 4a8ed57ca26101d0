"""The manifest's `strategy` and `strategyOptions`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block
from dtjob.api.replica_specs import MAX_REPLICAS

TPU_RESOURCE = "google.com/tpu"
"""What a container asks the chips of its node's TPU by."""
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
        """Whether one process trains alone, so that only `chief` (and `evaluator`) make sense."""
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
    """How ParameterServer cuts variables into shards, by rows, over the parameter servers. Integers stay whole."""

    fixed_shards: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = None
    """Cut every variable into this many shards, or one for each row where it has fewer rows."""
    min_shard_bytes: Annotated[int, Field(ge=1)] | None = None
    """Cut so that no shard is smaller than this; into maxShards at most."""
    max_shard_bytes: Annotated[int, Field(ge=1)] | None = None
    """Cut so that no shard is larger than this; into maxShards at most, where that is set."""
    max_shards: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = None
    """With minShardBytes or maxShardBytes: most shards of one variable. With minShardBytes, by default the number of
    parameter servers."""


class Tpu(Block):
    """The TPU that strategy TPU trains on: a slice of one host."""

    address: Annotated[str, Field(min_length=1, max_length=253)] = LOCAL_TPU
    """local: the TPU of the pod's own node. Otherwise the name or grpc:// address of a Cloud TPU."""
    accelerator: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Kind of TPU, as GKE labels its nodes (gke-tpu-accelerator), such as tpu-v5-lite-podslice."""
    topology: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Shape of the slice, as GKE labels its nodes (gke-tpu-topology), such as 2x2. The chief's pod asks for all of its
    chips (google.com/tpu)."""


class StrategyOptions(Block):
    """Options of the strategy."""

    communication: Communication | None = None
    """MultiWorkerMirrored: how gradients are reduced. Auto lets TensorFlow choose, which takes Ring on GPUs too; NCCL
    needs GPUs, of which no two tasks share one."""
    cross_device_ops: CrossDeviceOps | None = None
    """Mirrored: how gradients are reduced between devices. NCCL needs GPUs."""
    logical_cpus: Annotated[int | None, Field(ge=1, le=64, alias="logicalCPUs")] = None
    """OneDevice, Mirrored and CentralStorage: splits the CPU into this many devices, to try a job without GPUs."""
    device: Annotated[str, Field(max_length=16)] | None = None
    """OneDevice: the device that trains, such as GPU:0 or CPU:0. Left out: the first GPU, or the CPU where there is
    none."""
    partitioner: Partitioner | None = None
    """ParameterServer: cuts large variables into shards. Left out: each variable is whole on one parameter server."""
    tpu: Tpu | None = None
    """TPU: which one."""
