# SPDX-License-Identifier: Apache-2.0
"""Decisions about tasks whose pods have ended or are gone. `write_ahead.py` writes each into the status."""

from dataclasses import dataclass
from datetime import datetime

from dtjob.api.status.internal import Incident
from dtjob.objects.topology import Task
from dtjob.plan.record.failure import Failure


@dataclass(frozen=True)
class Restart:
    """Training restarts over the failure `first`: write `incident` into the status, and give `tasks` a new attempt.

    A new incident begins if `counted_as` is None. If not, it was counted before under that cause, `restarts` times.
    Then more has failed of it, or its cause shows only now, in `first`: in that case there are no `tasks`.
    """

    tasks: tuple[Task, ...]
    incident: Incident
    first: Failure
    counted_as: str | None = None
    restarts: int = 1


@dataclass(frozen=True)
class Renew:
    """These tasks get a new attempt, which is not counted: they have finished and are needed again, or have to go to
    another node. `why` says so to users; empty: not."""

    tasks: tuple[Task, ...]
    why: str = ""


@dataclass(frozen=True)
class ReplaceEvaluator:
    """The evaluator has failed: a new attempt. It is counted apart, because training does not wait for the
    evaluator."""

    tasks: tuple[Task, ...]
    failure: Failure


@dataclass(frozen=True)
class GiveUpEvaluation:
    """Training has ended, and the evaluator is not waited for any longer; `why` says so in words."""

    why: str


@dataclass(frozen=True)
class Wait:
    """Something has failed, and the decision about it is made at this moment.

    `over` is the failure that ends the job then, unless its cause turns out not to be the job's own.
    """

    until: datetime
    over: Failure | None = None


@dataclass(frozen=True)
class GiveUp:
    """The job fails for good over the failure `first` (None: over a deadline); `why` says so in words, `reason` in
    one."""

    first: Failure | None
    why: str
    reason: str = "MaxRestartsExceeded"


TrainingDecision = Restart | Renew | Wait | GiveUp | None
"""None: nothing is to be done."""
EvaluatorDecision = Renew | ReplaceEvaluator | GiveUpEvaluation | Wait | None


def replaced(decision: TrainingDecision | EvaluatorDecision) -> tuple[Task, ...]:
    """The tasks that get a new attempt."""
    return decision.tasks if isinstance(decision, Restart | Renew | ReplaceEvaluator) else ()
