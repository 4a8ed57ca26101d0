"""The manifest's `replicas`: the job's tasks, by role."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block
from dtjob.api.pod_template import PodTemplate, Resources

MAX_REPLICAS = 4000
"""Most workers whose cluster spec fits one environment string (128 KiB, Linux's MAX_ARG_STRLEN) at a short name."""


class Role(StrEnum):
    """What a task does in the cluster, in the order in which tasks are listed and created."""

    CHIEF = "chief"
    WORKER = "worker"
    PS = "ps"
    EVALUATOR = "evaluator"


class Replica(Block):
    """The tasks of one role."""

    count: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = 1
    """How many tasks. chief and evaluator take one."""
    resources: Resources | None = None
    """Compute resources of the training container; the short way for template.spec.containers[].resources."""
    template: PodTemplate | None = None
    """Pod template for this role: anything of a pod that dtjob does not set itself."""


class WorkerReplica(Replica):
    """The workers. With min or max they are elastic: count may change while the job runs (`kubectl scale`, an HPA), and
    each change saves first and goes on at that checkpoint with a new group."""

    count: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = 1
    """How many tasks. With min or max it may change while the job runs."""
    min: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = None
    """The least with which the job trains where there is no room for count: see runPolicy.elasticity. Left out: it
    never trains with fewer than count."""
    max: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = None
    """The highest count that is taken. Left out, but with min: any."""

    @property
    def elastic(self) -> bool:
        """Whether their number may change."""
        return self.min is not None or self.max is not None


class Replicas(Block):
    """The job's tasks, by role."""

    chief: Replica | None = None
    """The task that writes checkpoints and decides success. Left out under MultiWorkerMirrored, and under
    ParameterServer without program, worker 0 is it."""
    worker: WorkerReplica | None = None
    """Tasks that train (MultiWorkerMirrored, ParameterServer)."""
    ps: Replica | None = None
    """Parameter servers, which hold the variables (ParameterServer only)."""
    evaluator: Replica | None = None
    """Evaluates each checkpoint beside the training; its failure fails the job only where a rule says so."""

    def get(self, role: Role) -> Replica | None:
        """The replica block of `role`, None where the job has no such tasks."""
        replica: Replica | None = getattr(self, role.value)
        return replica
