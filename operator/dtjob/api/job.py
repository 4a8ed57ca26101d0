"""The manifest: `DistributedTrainingJob` as pydantic models.

These models are the only definition of the manifest's fields. `crd.py` generates the CRD's schema from them (the
descriptions are what `kubectl explain` prints), `rules.py` holds what no single field can say.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from dtjob.api.pod_template import Block, EnvVar, OpenBlock, PodTemplate, Resources, VolumeSource
from dtjob.api.tensorboard import TensorBoard

GROUP = "training.dtjob.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "DistributedTrainingJob"
PLURAL = "distributedtrainingjobs"

TRAINING_CONTAINER = "tensorflow"
"""The container whose end decides about its task, as in TFJob."""

MAX_REPLICAS = 4000
"""Most workers whose cluster spec fits one environment string (128 KiB, Linux's MAX_ARG_STRLEN) at a short name."""


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


class Role(StrEnum):
    """What a task does in the cluster, in the order in which tasks are listed and created."""

    CHIEF = "chief"
    WORKER = "worker"
    PS = "ps"
    EVALUATOR = "evaluator"


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


class EvaluatedCheckpoints(StrEnum):
    """Which checkpoints the evaluator looks at."""

    LATEST = "Latest"
    EVERY = "Every"


class BestMode(StrEnum):
    """Which value of a metric is the best."""

    MAX = "Max"
    MIN = "Min"


class CleanPods(StrEnum):
    """Which pods are removed when the job has ended."""

    RUNNING = "Running"
    ALL = "All"
    NONE = "None"


class Mount(StrEnum):
    """Which pods mount the checkpoint volume."""

    CHIEF = "Chief"
    ALL = "All"


class NetworkPolicyMode(StrEnum):
    """Who may reach the job's pods."""

    ISOLATED = "Isolated"
    NONE = "None"


Text = Annotated[str, Field(min_length=1, max_length=4096)]
UNSET_IN_CLUSTER = {"x-dtjob-default": "in Python only"}
"""Marks a default that the API server does not fill in, as its presence means something: it is for `program` only."""


class Replica(Block):
    """The tasks of one role."""

    count: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = 1
    """How many tasks. chief and evaluator take one."""
    resources: Resources | None = None
    """Compute resources of the training container; the short way for template.spec.containers[].resources."""
    template: PodTemplate | None = None
    """Pod template for this role: anything of a pod that dtjob does not set itself."""


class Replicas(Block):
    """The job's tasks, by role."""

    chief: Replica | None = None
    """The task that writes checkpoints and decides success. Left out under MultiWorkerMirrored, worker 0 is it."""
    worker: Replica | None = None
    """Tasks that train (MultiWorkerMirrored, ParameterServer)."""
    ps: Replica | None = None
    """Parameter servers, which hold the variables (ParameterServer only)."""
    evaluator: Replica | None = None
    """Evaluates each checkpoint beside the training; its failure never fails the job."""

    def get(self, role: Role) -> Replica | None:
        """The replica block of `role`, None where the job has no such tasks."""
        replica: Replica | None = getattr(self, role.value)
        return replica


class Program(Block):
    """The training program, run by the trainer image's supervisor."""

    entry: Text
    """A Python file in the image (ends in .py; relative to its working directory) or a module name."""
    args: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=256)] = Field(default_factory=list)
    """Arguments of the program."""
    env: Annotated[list[EnvVar], Field(max_length=512)] = Field(default_factory=list)
    """Environment variables for every task."""


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

    address: Annotated[str, Field(min_length=1, max_length=253)] = "local"
    """local: the TPU of the pod's own node. Otherwise the name or grpc:// address of a Cloud TPU."""
    accelerator: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Kind of TPU, as GKE labels its nodes (gke-tpu-accelerator), such as tpu-v5-lite-podslice."""
    topology: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Shape of the slice, as GKE labels its nodes (gke-tpu-topology), such as 2x2. The chief's pod asks for all of its
    chips (google.com/tpu)."""


class StrategyOptions(Block):
    """Options of the strategy."""

    communication: Communication | None = None
    """MultiWorkerMirrored: how gradients are reduced. Auto lets TensorFlow choose, NCCL needs GPUs."""
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


class Checkpoint(Block):
    """Where and how often training is saved."""

    directory: Text
    """Absolute path (or gs:// URI) of the checkpoints. It must outlive the chief's pod for a restart to resume."""
    volume: VolumeSource | None = None
    """Any one Kubernetes volume source, such as {persistentVolumeClaim: {claimName: digits}}; mounted at directory."""
    mount: Mount = Mount.CHIEF
    """Which pods mount volume: Chief (any ReadWriteOnce volume will do; the evaluator runs on the chief's node) or All
    (a shared file system)."""
    every_steps: Annotated[int, Field(ge=1)] | None = None
    """Save each time this many steps were trained."""
    every_seconds: Annotated[int, Field(ge=1)] | None = None
    """Save each time this many seconds have passed. 300 where everySteps is not set either."""
    keep: Annotated[int, Field(ge=1, le=1000, json_schema_extra=UNSET_IN_CLUSTER)] = 3
    """How many checkpoints are kept; 3 where left out."""
    asynchronous: Annotated[bool, Field(alias="async", json_schema_extra=UNSET_IN_CLUSTER)] = True
    """Whether training goes on while a checkpoint is written; true where left out."""
    save_timeout_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """Time that a pod is given to save before it is removed (its terminationGracePeriodSeconds)."""


class BestModel(Block):
    """The model that was best so far, kept beside the checkpoints as best.keras."""

    metric: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the metric as the evaluator reports it, such as loss or accuracy."""
    mode: BestMode
    """Max: the highest value is the best (accuracy). Min: the lowest is (loss)."""


class Evaluation(Block):
    """What the evaluator does."""

    checkpoints: EvaluatedCheckpoints = EvaluatedCheckpoints.LATEST
    """Latest: whenever it is free, the newest. Every: each in turn, but those that checkpoint.keep removes."""
    best: BestModel | None = None
    """Keeps the best model."""


class Backoff(Block):
    """The wait before a restart, which doubles with each restart that follows without a new checkpoint between."""

    initial_seconds: Annotated[int, Field(ge=0, le=3600)] = 10
    """Wait before the second restart in a row; the first one never waits."""
    max_seconds: Annotated[int, Field(ge=0, le=86400)] = 300
    """The longest wait."""


class FailurePolicy(Block):
    """What happens when tasks fail."""

    max_restarts: Annotated[int, Field(ge=0)] = 10
    """How many restarts in a row, without a newer checkpoint between them, are tried before the job fails. Evictions,
    drains and deleted pods are not counted."""
    backoff: Backoff = Backoff()
    """The wait before a restart."""


class RunPolicy(Block):
    """The life of the job as a whole."""

    clean_pods: CleanPods = CleanPods.RUNNING
    """Which pods are removed when the job has ended: those still Running (such as parameter servers), All, or None."""


class Scheduling(Block):
    """How the pods are placed."""

    priority_class_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """PriorityClass of the pods."""


Port = Annotated[int, Field(ge=1024, le=65535)]


class Network(Block):
    """Ports, and who may reach them."""

    port: Port = 2222
    """TensorFlow's gRPC port in every pod."""
    status_port: Annotated[Port, Field(json_schema_extra=UNSET_IN_CLUSTER)] = 2223
    """Port on which the supervisor serves /status and /metrics, with program only; 2223 where left out."""
    policy: NetworkPolicyMode = NetworkPolicyMode.ISOLATED
    """Isolated: a NetworkPolicy lets only pods of the same job reach TensorFlow's port, which has no authentication.
    None: no NetworkPolicy is made."""


class Spec(Block):
    """What to train, and on what."""

    strategy: Strategy
    """The tf.distribute strategy that trains."""
    image: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Container image of every task: dtjob's trainer image or one built on it; with program left out, any image. Left
    out: the default image of the operator, if it has one; the job keeps the one it began with."""
    program: Program | None = None
    """The program to run. Left out: the image's own command trains, and TF_CONFIG is there for it."""
    replicas: Replicas
    """The tasks, by role: chief, worker, ps, evaluator."""
    strategy_options: StrategyOptions | None = None
    """Options of the strategy."""
    checkpoint: Checkpoint | None = None
    """Where and how often training is saved. Left out: a restart begins again at step 0."""
    evaluation: Evaluation | None = None
    """What the evaluator does. Left out: it evaluates the latest checkpoint and keeps no model."""
    tensor_board: TensorBoard | None = None
    """What the chief writes for TensorBoard while it trains. Left out: nothing."""
    failure_policy: FailurePolicy = FailurePolicy()
    """What happens when tasks fail."""
    run_policy: RunPolicy = RunPolicy()
    """The life of the job as a whole."""
    scheduling: Scheduling = Scheduling()
    """How the pods are placed."""
    network: Network = Network()
    """Ports, and who may reach them."""


class Metadata(OpenBlock):
    """The Kubernetes metadata that dtjob reads."""

    name: str
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    generation: int = 0


class Job(Block):
    """One DistributedTrainingJob. `status` stays a plain dict: it is what `plan` last wrote."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: Metadata
    spec: Spec
    status: dict[str, Any] = Field(default_factory=dict)
