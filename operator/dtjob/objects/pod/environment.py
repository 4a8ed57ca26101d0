# SPDX-License-Identifier: Apache-2.0
"""The environment of a training container: the variables of contract.md, and what they say of ends.

After a crash a supervisor starts its training process again by itself, in the pod that it has: a new pod takes longer,
and gains nothing if the process had trained well. If a user wants a new pod, a failure rule names the signal. Then the
container ends, and `plan/failure/rules.py` asks the rule.

The time from a pod's deletion to SIGKILL is one number for the pod, its supervisor and `dtjob run`. A preStop hook of
the training container uses up part of this time: the kubelet sends SIGTERM only when the hook has ended. The seconds
of `preStop.sleep` are known. They are added to the time, unless the template gives it. (Other hooks are refused where
there is something to save.)
"""

import json
import signal
from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.checkpoint import Checkpoint, Evaluation
from dtjob.api.spec.failure_rules import ExitCodeOperator, FailureRule, Signal
from dtjob.api.spec.program import Integration
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.objects import shared, topology
from dtjob.objects.exit_codes import of_signal
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
    values["DTJOB_ATTEMPT"] = str(attempt)
    if task.role is not Role.DATA:
        chief = topology.address(job, topology.chief_task(job), job.spec.network.rendezvous_port)
        values["DTJOB_STRATEGY"] = job.spec.strategy.value
        values["DTJOB_CLUSTER_FILE"] = f"{CLUSTER_DIRECTORY}/{shared.CLUSTER_KEY}"
        values["DTJOB_CLUSTER_HASH"] = topology.cluster_hash(job)
        values["DTJOB_RENDEZVOUS_ADDRESS"] = chief
        values |= _blocks(job, task)
    values |= {
        "DTJOB_STATUS_PORT": str(job.spec.network.status_port),
        "DTJOB_GRACE_SECONDS": str(seconds_after_sigterm(job, task)),
        "DTJOB_TERMINATION_LOG": termination_log or TERMINATION_LOG,
    }
    if job.spec.replica_specs.data is not None and task.role is not Role.EVALUATOR:
        # The chief task's training process hands the work out: it is never lost without the training that needs it.
        hands_out = topology.address(job, topology.chief_task(job), job.spec.network.data_port)
        values["DTJOB_DATA_SERVICE"] = f"grpc://{hands_out}"
    if task.role is Role.DATA:
        values["DTJOB_DATA_ADDRESS"] = topology.address(job, task, job.spec.network.port)
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


CRASHES = (Signal.SIGABRT, Signal.SIGBUS, Signal.SIGFPE, Signal.SIGILL, Signal.SIGKILL, Signal.SIGSEGV)
"""The signals of a process that broke or was killed from outside; the others are sent to end it."""
CRASH_REASONS = ("Error", "OOMKilled")
"""The reasons of a container that ends over one of them."""


def restart_signals(job: Job, task: Task) -> tuple[Signal, ...]:
    """The signals over which the training process of `task` is started again in its container, once it has done new
    steps. No rule of the job's is about them. None if maxRestartsWithoutProgress or maxRestarts is 0, and of tasks that
    train no steps."""
    serves = job.spec.strategy is Strategy.PARAMETER_SERVER and task.role is not Role.CHIEF
    if (
        job.spec.program is None
        or 0 in (job.spec.failure_policy.max_restarts_without_progress, job.spec.failure_policy.max_restarts)
        or serves
        or task.role is Role.EVALUATOR
    ):
        return ()
    rules = [rule for rule in job.spec.failure_policy.rules if rule.is_about(task.role)]
    return tuple(one for one in CRASHES if not any(_is_about(rule, one) for rule in rules))


def _is_about(rule: FailureRule, one: Signal) -> bool:
    """Whether the rule may say something of a container that ends over this signal."""
    if rule.on_exit_codes is not None:
        listed = of_signal(signal.Signals[one.value]) in rule.on_exit_codes.values
        return listed == (rule.on_exit_codes.operator is ExitCodeOperator.IN)
    if rule.on_signals is not None:
        return one in rule.on_signals
    if rule.on_reasons is not None:
        return any(reason in CRASH_REASONS for reason in rule.on_reasons)
    return rule.on_pod_conditions is None  # with roles alone it is about every failure of theirs


WITHOUT_CHECKPOINTS = 30
"""Kubernetes' default terminationGracePeriodSeconds: there is nothing to save."""
LEAST_AFTER_SIGTERM = 2
"""Seconds that a kubelet leaves after SIGTERM, however long the hook took."""


def pod_seconds(job: Job, task: Task) -> int:
    """The terminationGracePeriodSeconds of the task's pod: its template's, else the time to save and to sleep."""
    replica = job.spec.replica_specs.get(task.role)
    given = replica.pod_spec.termination_grace_period_seconds if replica else None
    if given is not None:
        return given
    time_to_save = job.spec.checkpoint.save_timeout_seconds if job.spec.checkpoint else WITHOUT_CHECKPOINTS
    return time_to_save + _slept(job, task)


def seconds_after_sigterm(job: Job, task: Task) -> int:
    """What is left of the pod's seconds when the training container gets SIGTERM."""
    whole, slept = pod_seconds(job, task), _slept(job, task)
    return max(whole - slept, LEAST_AFTER_SIGTERM) if slept else whole


def _slept(job: Job, task: Task) -> int:
    """Seconds that the training container's preStop hook sleeps."""
    replica = job.spec.replica_specs.get(task.role)
    lifecycle = replica.training.lifecycle if replica else None
    hook = lifecycle.pre_stop if lifecycle else None
    return hook.sleep.seconds if hook and hook.sleep else 0
