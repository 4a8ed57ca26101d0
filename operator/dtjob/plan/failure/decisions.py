# SPDX-License-Identifier: Apache-2.0
"""Decisions about tasks whose pods have ended or are gone. `write_ahead.py` writes each into the status."""

from dataclasses import dataclass
from datetime import datetime

from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.status.internal import Incident
from dtjob.objects.topology import Task
from dtjob.plan.record.failure import Failure


@dataclass(frozen=True)
class Begin:
    """A new incident begins with the failure `first`: count it, and give `tasks` a new attempt."""

    tasks: tuple[Task, ...]
    incident: Incident
    first: Failure


@dataclass(frozen=True)
class Join:
    """More has failed of the incident that is under way, and is now this one: give `tasks` a new attempt.

    It is counted already, under `counted_as`. If the incident has another cause now, the failure `first` is that cause.
    """

    tasks: tuple[Task, ...]
    incident: Incident
    counted_as: str
    first: Failure


@dataclass(frozen=True)
class Explain:
    """The cause of the incident shows only now, in `first`: count it as what it is now, `incident`, and replace no
    task.

    `restarts` is how many incidents this cause had, all counted under `counted_as`. `action` is what is to be done
    about such a failure.
    """

    incident: Incident
    counted_as: str
    first: Failure
    restarts: int = 1
    action: RuleAction = RuleAction.RESTART


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
    """The job fails for good over the failure `first`; `why` says so in words, `reason` in one."""

    first: Failure
    why: str
    reason: str = "MaxRestartsExceeded"


TrainingDecision = Begin | Join | Explain | Renew | Wait | GiveUp | None
"""None: nothing is to be done."""
EvaluatorDecision = Renew | ReplaceEvaluator | GiveUpEvaluation | Wait | None


def replaced(decision: TrainingDecision | EvaluatorDecision) -> tuple[Task, ...]:
    """The tasks that get a new attempt."""
    return decision.tasks if isinstance(decision, Begin | Join | Renew | ReplaceEvaluator) else ()
