# SPDX-License-Identifier: Apache-2.0
"""A failure: its task, its cause and its words, as `status.firstFailure` keeps it; and the enum of all causes.

`plan/failure/cause.py` finds the cause of a pod's end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from dtjob.api.status.block import whole
from dtjob.api.status.restarts import FirstFailure, ProgramException
from dtjob.objects.topology import Task
from dtjob.plan.record.program_end import UNKNOWN, ProgramEnd


class Cause(StrEnum):
    """Kinds of failure. The order is that of precedence inside one incident."""

    DISRUPTION = "Disruption"
    DELETED = "Deleted"
    NOT_STARTED = "NotStarted"
    OOM_KILLED = "OOMKilled"
    STORAGE_LIMIT_EXCEEDED = "StorageLimitExceeded"
    SIGNAL = "Signal"
    STALLED = "Stalled"
    ERROR = "Error"

    @property
    def charged(self) -> bool:
        """Whether it counts against failurePolicy.maxRestartsWithoutProgress: only what the job itself did."""
        return self not in (Cause.DISRUPTION, Cause.DELETED, Cause.NOT_STARTED)

    @property
    def precedence(self) -> int:
        """Lower wins: pod condition, then an exceeded limit, a signal or a stall, then other exit codes."""
        return list(Cause).index(self)

    @classmethod
    def known(cls, word: str) -> Cause | None:
        """The cause of this name; None for any other word."""
        return next((cause for cause in cls if cause == word), None)


@dataclass(frozen=True)
class Failure:
    """One task's failure, as it goes to `status.firstFailure`."""

    task: Task
    cause: Cause
    time: datetime
    pod: str
    node: str
    reason: str
    message: str
    exit_code: int | None = None
    end: ProgramEnd = UNKNOWN
    """What the task's supervisor told of it."""
    rule: str = ""
    """The rule of failurePolicy.rules that decided about it and what it matched, in words; empty for none."""

    def in_status(self) -> FirstFailure:
        """The failure as the status has it; `exitCode` only where the container ended, `exception` and
        `beforeFirstStep` where its supervisor told of them."""
        return FirstFailure(
            task=self.task.id,
            pod=self.pod,
            node=self.node,
            cause=self.cause.value,
            reason=self.reason,
            message=self.message,
            rule=self.rule,
            time=whole(self.time),
            exit_code=self.exit_code,
            exception=ProgramException(**self.end.exception_json) if self.end.exception else None,
            before_first_step=None if self.end.stepped is None else not self.end.stepped,
        )

    def sentence(self) -> str:
        """The failure in words, for events and the status message."""
        return f"{self.task.id} {self.reason}"

    def with_rule(self) -> str:
        """The same, with the rule that decided about it."""
        return "; ".join(filter(None, (self.sentence(), self.rule)))
