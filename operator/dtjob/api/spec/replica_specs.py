# SPDX-License-Identifier: Apache-2.0
"""The manifest's `replicaSpecs`: the job's tasks, by role."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from dtjob.api.block import Block
from dtjob.api.spec.pod_template import TRAINING_CONTAINER, Container, PodSpec, PodTemplate, Resources

MAX_REPLICAS = 4000
"""Most workers whose cluster spec fits one environment string (128 KiB, Linux's MAX_ARG_STRLEN) at a short name."""


class Role(StrEnum):
    """What a task does in the cluster, in the order in which tasks are listed and created."""

    CHIEF = "chief"
    WORKER = "worker"
    PS = "ps"
    DATA = "data"
    EVALUATOR = "evaluator"

    @property
    def trains(self) -> bool:
        """Whether tasks of this role train. The evaluator and the data workers work beside the training."""
        return self not in (Role.DATA, Role.EVALUATOR)


class _Tasks(Block):
    """What all roles have."""

    resources: Resources | None = None
    """Compute resources of the training container. Short for template.spec.containers[].resources."""
    template: PodTemplate | None = None
    """Pod template of this role. It may set any field of a pod that dtjob does not set itself."""

    @property
    def pod_spec(self) -> PodSpec:
        """The pod spec of the template, an empty one if there is none."""
        return (self.template.spec if self.template else None) or PodSpec.model_construct()

    @property
    def training(self) -> Container:
        """The training container of the template, an empty one if there is none."""
        found = (one for one in self.pod_spec.containers or () if one.name == TRAINING_CONTAINER)
        return next(found, Container.model_construct())


class SingleReplicaSpec(_Tasks):
    """The single task of a role."""

    replicas: ClassVar[int] = 1
    """There is always one."""


class ReplicaSpec(_Tasks):
    """The tasks of one role."""

    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = 1
    """Number of tasks. Defaults to 1."""


class WorkerReplicaSpec(ReplicaSpec):
    """The workers."""

    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = 1
    """Number of workers. If elasticPolicy is set, kubectl scale, an HPA or you may change it while the job runs.
    Defaults to 1."""


AnyReplicaSpec = SingleReplicaSpec | ReplicaSpec


class ReplicaSpecs(Block):
    """The job's tasks, by role."""

    chief: SingleReplicaSpec | None = None
    """Task that writes checkpoints and decides success. If left out, worker 0 does both. Only MultiWorkerMirrored, and
    ParameterServer without program, may leave it out."""
    worker: WorkerReplicaSpec | None = None
    """Tasks that train. Only for MultiWorkerMirrored and ParameterServer."""
    ps: ReplicaSpec | None = None
    """Parameter servers, which hold the variables. Only for ParameterServer."""
    data: ReplicaSpec | None = None
    """Data workers (tf.data service), which run the input pipeline. They read the files, so the template mounts the
    volumes of the data. Their number may change while the job runs. Training does not restart if one is lost."""
    evaluator: SingleReplicaSpec | None = None
    """Task that evaluates checkpoints beside the training. Its failure fails the job only if a rule of failurePolicy
    says so."""

    def get(self, role: Role) -> AnyReplicaSpec | None:
        """The block of `role`, None if the job has no such tasks."""
        found: AnyReplicaSpec | None = getattr(self, role.value)
        return found
