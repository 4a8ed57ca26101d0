# SPDX-License-Identifier: Apache-2.0
"""The task that this process runs, read from its environment (contract.md). No TensorFlow here."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dtjob_trainer.contract.settings import Checkpoint, Evaluation, TensorBoard, json_object
from dtjob_trainer.contract.strategy import ALONE, TRAITS, Traits
from dtjob_trainer.errors import TaskError

ROLES = ("chief", "worker", "ps", "data", "evaluator")

DEFAULT_GRACE_SECONDS = 30
"""Kubernetes' own default of terminationGracePeriodSeconds."""

ALONE_ADDRESS = "localhost:2222"
"""The address in TF_CONFIG of a task that trains by itself. Nothing listens there."""

DATA_SERVICE = "DTJOB_DATA_SERVICE"
"""The variable with the dispatcher's address, `grpc://host:port`. Not set in a job without data workers."""


@dataclass(frozen=True)
class Task:
    """One task of a job, as an attempt at it sees it."""

    name: str
    namespace: str
    uid: str
    role: str
    index: int
    attempt: int = 0
    strategy: str = "Default"
    strategy_options: Mapping[str, Any] = field(default_factory=dict)
    cluster: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Role to `host:port` of each of its tasks. The evaluator is never in it."""
    cluster_hash: str = ""
    rendezvous: str = ""
    """`host:port` at which the chief task's supervisor answers /rendezvous. Empty if there is none."""
    rendezvous_port: int | None = None
    """The port of that address."""
    status_port: int | None = None
    data_service: str = ""
    """`host:port` of the dispatcher of tf.data service. Empty without data workers, and for the evaluator."""
    data_address: str = ""
    """`host:port` at which this data worker serves. Empty for other tasks."""
    checkpoint: Checkpoint | None = None
    evaluation: Evaluation = field(default_factory=Evaluation)
    tensorboard: TensorBoard | None = None
    grace_seconds: float = DEFAULT_GRACE_SECONDS
    parent: int | None = None
    """Process id of the `dtjob run` that this task must end with. None in a pod."""
    stall_seconds: float | None = None
    """Training has stalled after so many seconds without a new step. None: never."""
    restart_signals: frozenset[int] = frozenset()
    """If one of these signals ends a training process that has done new steps, it is started again in its container."""
    integrated: bool = True
    """Whether the program finds TensorFlow, Keras and Python as dtjob makes them: spec.program.integration is Full."""
    gpus: int = 0
    """How many of nvidia.com/gpu the container has."""
    termination_log: str = ""
    """Path of the file to which the supervisor writes its last status. Empty: it writes none."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Task | None":
        """The task that `environ` describes. None if DTJOB_ROLE is not set (a program run by hand).

        Reads the file named by DTJOB_CLUSTER_FILE. Raises TaskError for values that the contract does not allow.
        """
        role = environ.get("DTJOB_ROLE")
        if not role:
            return None
        if role not in ROLES:
            raise TaskError(f"DTJOB_ROLE is {role!r}; it must be one of {', '.join(ROLES)}")
        strategy = environ.get("DTJOB_STRATEGY", "Default")
        if strategy not in TRAITS:
            raise TaskError(f"DTJOB_STRATEGY is {strategy!r}; it must be one of {', '.join(TRAITS)}")
        options, checkpoint = environ.get("DTJOB_STRATEGY_OPTIONS"), environ.get("DTJOB_CHECKPOINT")
        board = environ.get("DTJOB_TENSORBOARD")
        return cls(
            name=environ.get("DTJOB_NAME", ""),
            namespace=environ.get("DTJOB_NAMESPACE", ""),
            uid=environ.get("DTJOB_UID", ""),
            role=role,
            index=_whole_number(environ, "DTJOB_INDEX", 0),
            attempt=_whole_number(environ, "DTJOB_ATTEMPT", 0),
            strategy=strategy,
            strategy_options=json_object("DTJOB_STRATEGY_OPTIONS", options) if options else {},
            cluster=_read_cluster(environ.get("DTJOB_CLUSTER_FILE")),
            cluster_hash=environ.get("DTJOB_CLUSTER_HASH", ""),
            rendezvous=(rendezvous := _address(environ, "DTJOB_RENDEZVOUS_ADDRESS")),
            rendezvous_port=port_of(rendezvous) if rendezvous else None,
            status_port=_whole_number(environ, "DTJOB_STATUS_PORT", 0) or None,
            data_service=_address(environ, DATA_SERVICE),
            data_address=_address(environ, "DTJOB_DATA_ADDRESS"),
            checkpoint=Checkpoint.from_json(checkpoint) if checkpoint else None,
            evaluation=Evaluation.from_json(environ.get("DTJOB_EVALUATION") or "{}"),
            tensorboard=TensorBoard.from_json(board) if board else None,
            grace_seconds=float(_whole_number(environ, "DTJOB_GRACE_SECONDS", DEFAULT_GRACE_SECONDS)),
            parent=_whole_number(environ, "DTJOB_PARENT", 0) or None,
            stall_seconds=float(_whole_number(environ, "DTJOB_STALL_TIMEOUT_SECONDS", 0)) or None,
            restart_signals=_signals(environ, "DTJOB_RESTART_SIGNALS"),
            integrated=environ.get("DTJOB_INTEGRATION") != "None",
            gpus=_whole_number(environ, "DTJOB_GPUS", 0),
            termination_log=environ.get("DTJOB_TERMINATION_LOG", ""),
        )

    @property
    def id(self) -> str:
        """Role and index, such as `worker-1`."""
        return f"{self.role}-{self.index}"

    @property
    def is_chief(self) -> bool:
        """Whether this task writes checkpoints and decides success: chief-0, or worker-0 if there is no chief."""
        if self.role == "chief":
            return True
        return self.role == "worker" and self.index == 0 and not self.cluster.get("chief")

    @property
    def is_evaluator(self) -> bool:
        """Whether this task evaluates checkpoints and does not train."""
        return self.role == "evaluator"

    @property
    def traits(self) -> Traits:
        """The traits of the strategy of this task. For the evaluator, those of a program run by hand."""
        return ALONE if self.is_evaluator else TRAITS[self.strategy]

    @property
    def in_cluster(self) -> bool:
        """Whether the strategy connects this task with others. Evaluator and single-process tasks stand alone."""
        return self.role in self.traits.cluster_roles and self.index < len(self.cluster.get(self.role, ()))

    @property
    def serves_only(self) -> bool:
        """Whether this task runs a server of TensorFlow and not the program (ps, data, workers of ParameterServer)."""
        return self.role in ("ps", "data", *self.traits.serving_roles)

    @property
    def waits_for_go(self) -> bool:
        """Whether this task waits for its rendezvous to start, and starts again in place after a lost peer."""
        return self.in_cluster and not self.serves_only

    @property
    def computes_nothing(self) -> bool:
        """Whether this task only holds variables or hands out steps. It must not take GPUs from tasks that train."""
        return self.role in ("ps", "data") or (self.traits.asynchronous and self.role == "chief")

    @property
    def anew(self) -> str:
        """What a user does to train without the checkpoints that are there, in words: of a job, or of `dtjob run`."""
        return "choose another checkpoint.storage" if self.parent is None else "run it again with --fresh"

    @property
    def members(self) -> tuple[str, ...]:
        """Ids of all tasks that the strategy connects, with this one. Only its own id if it is not connected."""
        if not self.in_cluster:
            return (self.id,)
        roles = self.traits.cluster_roles
        return tuple(f"{role}-{index}" for role in roles for index in range(len(self.cluster.get(role, ()))))

    @property
    def address(self) -> str | None:
        """This task's own `host:port` in the cluster. None outside a cluster."""
        return self.cluster[self.role][self.index] if self.in_cluster else None

    @property
    def port(self) -> int | None:
        """The port on which TensorFlow listens in this task. None outside a cluster."""
        return port_of(self.address) if self.address else None

    def tf_config(self) -> dict[str, Any] | None:
        """The value of TF_CONFIG, with the roles of this strategy only. None for a task outside a cluster."""
        if not self.in_cluster:
            return None
        roles = self.traits.cluster_roles
        cluster = {role: list(self.cluster[role]) for role in roles if self.cluster.get(role)}
        return {"cluster": cluster, "task": {"type": self.role, "index": self.index}}

    def tf_config_of_one(self) -> dict[str, Any]:
        """TF_CONFIG of a task outside a cluster, for a program that reads it: the only worker, or the evaluator."""
        kind = "evaluator" if self.is_evaluator else "worker"
        return {"cluster": {"worker": [ALONE_ADDRESS]}, "task": {"type": kind, "index": 0}}


def host_of(address: str) -> str:
    """The host in `host:port`, without the brackets of an IPv6 address."""
    return address.rpartition(":")[0].strip("[]")


def port_of(address: str) -> int:
    """The port in `host:port`."""
    return int(address.rpartition(":")[2])


def _whole_number(environ: Mapping[str, str], variable: str, default: int) -> int:
    text = environ.get(variable, "")
    if not text:
        return default
    if not text.isdecimal():
        raise TaskError(f"{variable} is {text!r}; it must be a whole number")
    return int(text)


def _signals(environ: Mapping[str, str], variable: str) -> frozenset[int]:
    names = [name for name in environ.get(variable, "").split(",") if name]
    if unknown := [name for name in names if name not in signal.Signals.__members__]:
        raise TaskError(f"{variable} has {unknown[0]!r}; it must be names of signals, such as SIGKILL, with commas")
    return frozenset(signal.Signals[name].value for name in names)


def _address(environ: Mapping[str, str], variable: str) -> str:
    text = environ.get(variable, "")
    host, _, port = text.removeprefix("grpc://").rpartition(":")
    if text and not (host and port.isdecimal()):
        raise TaskError(f"{variable} is {text!r}; it must be host:port")
    return f"{host}:{port}" if text else ""


def _read_cluster(path: str | None) -> dict[str, tuple[str, ...]]:
    if not path:
        return {}
    try:
        value = json_object("DTJOB_CLUSTER_FILE's content", Path(path).read_text())
    except OSError as error:
        raise TaskError(f"DTJOB_CLUSTER_FILE cannot be read: {error}") from None
    for role, hosts in value.items():
        if not isinstance(hosts, list) or not all(isinstance(one, str) for one in hosts):
            raise TaskError(f"DTJOB_CLUSTER_FILE has {hosts!r} for role {role}; it must be a list of host:port")
    return {role: tuple(hosts) for role, hosts in value.items()}
