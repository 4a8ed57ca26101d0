# SPDX-License-Identifier: Apache-2.0
"""The environment of a training container: the variables of contract.md."""

import json
from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.checkpoint import Checkpoint, Evaluation
from dtjob.api.spec.program import Integration
from dtjob.api.spec.replica_specs import Role
from dtjob.objects import shared, topology
from dtjob.objects.pod import grace
from dtjob.objects.pod.restart_signals import restart_signals
from dtjob.objects.topology import Task

CLUSTER_DIRECTORY = "/etc/dtjob"
"""Where the job's ConfigMap is mounted."""
SOURCE_DIRECTORY = "/etc/dtjob-source"
"""Where the ConfigMap or volume of program.source is mounted."""
TERMINATION_LOG = "/dev/termination-log"
"""Kubernetes' default terminationMessagePath."""
TF_CONFIG = "TF_CONFIG"
"""The variable in which TensorFlow finds the cluster spec and the task's place in it."""
INTEGRATION = "DTJOB_INTEGRATION"
"""`None` if dtjob changes nothing in the process of the program. Absent otherwise."""
HASH_SEED = "PYTHONHASHSEED"
"""Python's seed of hashes of texts. It decides the order of sets, so that all tasks need the same."""

Variable = dict[str, Any]
"""One entry of a container's `env`."""


def environment(job: Job, task: Task, attempt: int, termination_log: str | None = None) -> list[Variable]:
    """The variables of one attempt at a task, in the order of the contract, then those of `program.env`.

    `termination_log` is the container's terminationMessagePath if it is not Kubernetes' default.
    """
    values = {
        "DTJOB_NAME": job.metadata.name,
        "DTJOB_NAMESPACE": job.metadata.namespace,
        "DTJOB_UID": job.metadata.uid,
        "DTJOB_ROLE": task.role.value,
        "DTJOB_INDEX": str(task.index),
    }
    if job.spec.program is None:
        return [*_literal(values), *_for_other_images(job, task)]
    values |= {
        "DTJOB_ATTEMPT": str(attempt),
        "DTJOB_STRATEGY": job.spec.strategy.value,
        "DTJOB_CLUSTER_FILE": f"{CLUSTER_DIRECTORY}/{shared.CLUSTER_KEY}",
        "DTJOB_CLUSTER_HASH": topology.cluster_hash(job),
        "DTJOB_STATUS_PORT": str(job.spec.network.status_port),
        "DTJOB_RENDEZVOUS_ADDRESS": topology.address(job, topology.chief_task(job), job.spec.network.rendezvous_port),
        "DTJOB_GRACE_SECONDS": str(grace.seconds_after_sigterm(job, task)),
        **_blocks(job, task),
        "DTJOB_TERMINATION_LOG": termination_log or TERMINATION_LOG,
    }
    if all(variable.name != HASH_SEED for variable in job.spec.program.env):
        values[HASH_SEED] = "0"
    return [*_literal(values), *(one.model_dump(by_alias=True, exclude_unset=True) for one in job.spec.program.env)]


def _for_other_images(job: Job, task: Task) -> list[Variable]:
    """The variables for an image without our trainer: no supervisor makes TF_CONFIG there."""
    cluster = {"configMapKeyRef": {"name": shared.config_map_name(job), "key": shared.CLUSTER_KEY}}
    member = json.dumps({"type": task.role.value, "index": task.index})
    return [
        {"name": "DTJOB_CLUSTER", "valueFrom": cluster},
        # The kubelet expands it, so the API server stores the cluster spec once and not in every pod.
        {"name": TF_CONFIG, "value": f'{{"cluster": $(DTJOB_CLUSTER), "task": {member}}}'},
    ]


def _blocks(job: Job, task: Task) -> dict[str, str]:
    """The parts of the manifest that the trainer reads, if the job has them and the task needs them."""
    spec, evaluates = job.spec, task.role is Role.EVALUATOR
    values = {}
    if spec.strategy_options:
        values["DTJOB_STRATEGY_OPTIONS"] = json.dumps(
            spec.strategy_options.model_dump(mode="json", by_alias=True, exclude_none=True)
        )
    if spec.failure_policy.stall_timeout_seconds is not None and not evaluates:
        values["DTJOB_STALL_TIMEOUT_SECONDS"] = str(spec.failure_policy.stall_timeout_seconds)
    if spec.program is not None and spec.program.integration is Integration.NONE:
        values[INTEGRATION] = spec.program.integration.value
    if spec.program is not None and spec.program.source is not None:
        below = spec.program.source.path
        values["DTJOB_SOURCE"] = f"{SOURCE_DIRECTORY}/{below}" if below else SOURCE_DIRECTORY
    if spec.program is not None and spec.program.requirements is not None:
        values["DTJOB_REQUIREMENTS"] = spec.program.requirements
    if signals := restart_signals(job, task):
        values["DTJOB_RESTART_SIGNALS"] = ",".join(signals)
    if spec.checkpoint:
        values["DTJOB_CHECKPOINT"] = json.dumps(_checkpoint(spec.checkpoint, spec.evaluation))
    if spec.evaluation and evaluates:
        values["DTJOB_EVALUATION"] = spec.evaluation.model_dump_json(by_alias=True, exclude_none=True)
    if spec.tensor_board and not evaluates:
        values["DTJOB_TENSORBOARD"] = spec.tensor_board.model_dump_json(by_alias=True, exclude_none=True)
    return values


def _checkpoint(checkpoint: Checkpoint, evaluation: Evaluation | None) -> dict[str, Any]:
    """What the trainer reads of `checkpoint`. The chief knows the metric of `keepBest` from here."""
    settings = checkpoint.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"storage"})
    if checkpoint.keep_best is not None and evaluation is not None and evaluation.best is not None:
        best = evaluation.best
        settings["keepBest"] = {"metric": best.metric, "mode": best.mode.value, "count": checkpoint.keep_best}
    return {"directory": checkpoint.directory, **settings}


def _literal(values: dict[str, str]) -> list[Variable]:
    """Entries with exactly these values: the kubelet expands $(NAME), so each dollar sign is escaped."""
    return [{"name": name, "value": value.replace("$", "$$")} for name, value in values.items()]
