# SPDX-License-Identifier: Apache-2.0
"""The manifest's `failurePolicy.rules`: what is done about which failures, in the words of a Job's podFailurePolicy.

A criterion of a rule is a field whose name begins with `on`. CONTRIBUTING.md lists all files that read criteria.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from dtjob.api.block import Block
from dtjob.api.spec.replica_specs import Role

_SET: Any = {"x-kubernetes-list-type": "set"}
"""Of a list whose entries are told apart by their value: an API server takes none twice."""


class RuleAction(StrEnum):
    """What happens on a failure."""

    RESTART = "Restart"
    RESTART_AND_IGNORE_MAX_RESTARTS = "RestartAndIgnoreMaxRestarts"
    FAIL_JOB = "FailJob"
    LEAVE_FAILED = "LeaveFailed"


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
    """Matches the exit code of the training container, or of an init container that failed before it. Exit code 0 never
    matches."""

    operator: ExitCodeOperator
    """In: one of values. NotIn: none of values."""
    values: Annotated[
        list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=1, max_length=255, json_schema_extra=_SET)
    ]
    """Exit codes from 1 to 255. If a signal ends a process, the code is 128 and the signal's number."""


class OnPodCondition(Block):
    """Matches a condition of the pod."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Type of the condition. Example: DisruptionTarget."""
    status: ConditionStatus = ConditionStatus.TRUE
    """Status of the condition, in quotes: "True", "False" or "Unknown". Defaults to "True"."""
    reason: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Reason of the condition. Example: EvictionByEvictionAPI. Any reason if left out."""


RuledRole = Literal["chief", "worker", "ps", "evaluator"]
"""The roles whose failures rules may be about. A data worker is replaced whatever it fails of."""


class FailureRule(Block):
    """Matches failures of some roles by one of onExitCodes, onSignals, onReasons and onPodConditions, and says what
    happens."""

    action: RuleAction
    """Restart: maxRestartsWithoutProgress counts it. RestartAndIgnoreMaxRestarts: only maxDisruptionsWithoutProgress
    counts it. FailJob: the job fails at once. LeaveFailed: the evaluator is not replaced, and training continues."""
    on_exit_codes: OnExitCodes | None = None
    """Exit codes that match. The container ends with the program's own exit code."""
    on_signals: Annotated[list[Signal], Field(min_length=1, max_length=22, json_schema_extra=_SET)] | None = None
    """Signals that match. Example: [SIGSEGV]. The exit code says which signal ended the container or its program. With
    such a rule, the pod ends at a crash that otherwise restarts the program inside it."""
    on_reasons: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=128)]],
            Field(min_length=1, max_length=64, json_schema_extra=_SET),
        ]
        | None
    ) = None
    """Reasons that match. A container ends with one: OOMKilled, Error, or Stalled (stallTimeoutSeconds). So does a pod:
    Evicted, OutOfcpu. A container that cannot start has one too: ImagePullBackOff, ErrImagePull, InvalidImageName,
    CreateContainerConfigError; its pod need not have failed."""
    on_pod_conditions: Annotated[list[OnPodCondition], Field(min_length=1, max_length=20)] | None = None
    """Conditions of a failed pod that match; one of them is enough. Example: [{type: DisruptionTarget}]."""
    roles: Annotated[list[RuledRole], Field(min_length=1, max_length=4, json_schema_extra=_SET)] | None = None
    """Roles whose failures match. If no other criterion is set, all their failures match. Defaults to chief, worker and
    ps."""

    def is_about(self, role: Role) -> bool:
        """Whether failures of this role may match."""
        return role is not Role.EVALUATOR if self.roles is None else role in self.roles


_ORDERED: Any = {"x-kubernetes-list-type": "atomic"}
FailureRules = Annotated[list[FailureRule], Field(max_length=20, json_schema_extra=_ORDERED)]
