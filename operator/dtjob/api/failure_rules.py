"""The manifest's `failurePolicy.rules`: what is done about which failures, in the words of a Job's podFailurePolicy."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from dtjob.api.block import Block
from dtjob.api.replicas import Role

_SET: Any = {"x-kubernetes-list-type": "set"}
"""Of a list whose entries are told apart by their value: an API server takes none twice."""


class RuleAction(StrEnum):
    """What is done about a failure."""

    RESTART = "Restart"
    RESTART_UNCOUNTED = "RestartUncounted"
    FAIL_JOB = "FailJob"
    IGNORE = "Ignore"


class ExitCodeOperator(StrEnum):
    """How an exit code is compared with the values."""

    IN = "In"
    NOT_IN = "NotIn"


class ConditionStatus(StrEnum):
    """The status of a pod's condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Signal(StrEnum):
    """The signals that end a process which does not handle them (signal(7)); those of Linux on x86 and ARM."""

    SIGHUP = "SIGHUP"
    SIGINT = "SIGINT"
    SIGQUIT = "SIGQUIT"
    SIGILL = "SIGILL"
    SIGTRAP = "SIGTRAP"
    SIGABRT = "SIGABRT"
    SIGBUS = "SIGBUS"
    SIGFPE = "SIGFPE"
    SIGKILL = "SIGKILL"
    SIGUSR1 = "SIGUSR1"
    SIGSEGV = "SIGSEGV"
    SIGUSR2 = "SIGUSR2"
    SIGPIPE = "SIGPIPE"
    SIGALRM = "SIGALRM"
    SIGTERM = "SIGTERM"
    SIGXCPU = "SIGXCPU"
    SIGXFSZ = "SIGXFSZ"
    SIGVTALRM = "SIGVTALRM"
    SIGPROF = "SIGPROF"
    SIGIO = "SIGIO"
    SIGPWR = "SIGPWR"
    SIGSYS = "SIGSYS"


class OnExitCodes(Block):
    """Matches on how the training container ended, or an init container that failed before it: where it ended at all,
    somebody saw it, and not with 0."""

    operator: ExitCodeOperator
    """In: one of values. NotIn: none of them."""
    values: Annotated[
        list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=1, max_length=255, json_schema_extra=_SET)
    ]
    """Exit codes from 1 to 255; a process that a signal ends has 128 and the signal's number."""


class OnPodCondition(Block):
    """Matches on a condition of the pod."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Its type, such as DisruptionTarget."""
    status: ConditionStatus = ConditionStatus.TRUE
    """Its status; True where left out. In quotes, as YAML takes True for something else."""
    reason: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Its reason, such as EvictionByEvictionAPI. Left out: any."""


class FailureRule(Block):
    """What is done about the failures that it matches: one of onExitCodes, onSignals, onReasons, onPodConditions, of
    these roles."""

    action: RuleAction
    """Restart: counted by maxRestarts. RestartUncounted: counted by maxDisruptions only. FailJob: the job fails at
    once. Ignore: the evaluator is not replaced, and training goes on without it."""
    on_exit_codes: OnExitCodes | None = None
    """The exit codes that it matches. A program's own reach it: the supervisor ends its container with them."""
    on_signals: Annotated[list[Signal], Field(min_length=1, max_length=22, json_schema_extra=_SET)] | None = None
    """The signals that it matches, such as SIGSEGV: what ended the container, or its program, as an exit code of 128
    and more says. A program that SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL or SIGSEGV ends after new steps starts again
    in its pod where no rule is about that signal when the pod is made."""
    on_reasons: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=128)]],
            Field(min_length=1, max_length=64, json_schema_extra=_SET),
        ]
        | None
    ) = None
    """The reasons that it matches: of the container's end (OOMKilled, Error, and Stalled over stallTimeoutSeconds), of
    the pod's (Evicted, OutOfcpu), and of a container that cannot start (ImagePullBackOff, ErrImagePull,
    InvalidImageName, CreateContainerConfigError), for which the pod need not have failed."""
    on_pod_conditions: Annotated[list[OnPodCondition], Field(min_length=1, max_length=20)] | None = None
    """The conditions of a failed pod that it matches, each by itself, such as {type: DisruptionTarget}."""
    roles: Annotated[list[Role], Field(min_length=1, max_length=4, json_schema_extra=_SET)] | None = None
    """The roles whose failures it matches; with nothing else beside it, all of them. Left out: chief, worker and ps."""

    def is_about(self, role: Role) -> bool:
        """Whether failures of this role may match."""
        return role is not Role.EVALUATOR if self.roles is None else role in self.roles


_ORDERED: Any = {"x-kubernetes-list-type": "atomic"}
FailureRules = Annotated[list[FailureRule], Field(max_length=20, json_schema_extra=_ORDERED)]
