# SPDX-License-Identifier: Apache-2.0
"""Decisions about tasks whose pods have ended or are gone, and what each writes into the status and tells users.

The status is written before any call is made. A crash after that costs nothing: the next plan finds tasks at attempts
that have no pods yet, and makes those.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dtjob.api.job import Job
from dtjob.api.phase import Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.api.status.internal import Incident
from dtjob.api.status.status import Status
from dtjob.objects import topology
from dtjob.objects.topology import Task
from dtjob.plan.diagnosis.checkpoints import checkpoints_end, goes_on_from
from dtjob.plan.failure.budget import ran_for_long
from dtjob.plan.record.failure import Failure
from dtjob.plan.record.incidents import add_incident, begun_by, correct_incident, goes_on_without, reopen_incident
from dtjob.plan.record.status import EVALUATION_GIVEN_UP, bump_attempts, count_restart, holds, set_condition
from dtjob.plan.seen.situation import Draft, Situation


@dataclass(frozen=True)
class Restart:
    """Training restarts over the failure `first`: write `incident` into the status, and give `tasks` a new attempt.

    There are three cases. If `counted_as` is None, the incident is new. If not, it was counted before under that cause,
    `restarts` times: with `tasks`, more of it has failed; without, only its cause is corrected.
    """

    tasks: tuple[Task, ...]
    incident: Incident
    first: Failure
    counted_as: str | None = None
    restarts: int = 1


@dataclass(frozen=True)
class Renew:
    """Give `tasks` a new attempt, without a restart of training. The tasks have finished and are needed again, they
    have to go to another node, or the evaluator has failed, for which training does not wait.

    `why` tells users. If it is empty, users are told nothing. `failed`: the evaluator has failed. That is counted
    apart.
    """

    tasks: tuple[Task, ...]
    why: str = ""
    failed: bool = False


@dataclass(frozen=True)
class GiveUpEvaluation:
    """Training has ended, and the evaluator is not waited for any longer; `why` says so in words."""

    why: str


@dataclass(frozen=True)
class Wait:
    """Something has failed, and the decision about it is made at this moment.

    `then_fails` is the failure that ends the job then, unless its cause turns out not to be the job's own.
    """

    until: datetime
    then_fails: Failure | None = None


@dataclass(frozen=True)
class GiveUp:
    """The job fails for good over the failure `first` (None: over a deadline); `why` says so in words, `reason` in
    one."""

    first: Failure | None
    why: str
    reason: str = "MaxRestartsExceeded"
    goes_on: bool = False
    """The failure is part of the latest incident, which was counted before."""


TrainingDecision = Restart | Renew | Wait | GiveUp | None
"""None: nothing is to be done."""
EvaluatorDecision = Renew | GiveUpEvaluation | Wait | None


def replaced(decision: TrainingDecision | EvaluatorDecision) -> tuple[Task, ...]:
    """The tasks that get a new attempt."""
    return decision.tasks if isinstance(decision, Restart | Renew) else ()


def write_ahead(draft: Draft, decision: TrainingDecision | EvaluatorDecision) -> None:
    """Write new attempts, counts and the cause into the status, and emit Events. A wait is a time to look again."""
    situation, status = draft.situation, draft.status
    if tasks := replaced(decision):
        status = bump_attempts(status, tasks, (view.task for view in situation.views))
    match decision:
        case Restart():
            status = _counted(draft, status, decision)
        case Wait(then_fails=Failure() as first):
            status = status.but(last_failure=first.in_status())
            backoff, incident = situation.group_job.spec.failure_policy.backoff, status.internal.incident
            if incident is not None and ran_for_long(situation.status, backoff, draft.now):
                # Noted now: when the cause is known, the job does not run any more.
                status = status.remembering(incident=incident.but(uncharged=0, in_a_row=0))
        case Renew(why=why, failed=failed) if why:
            status = status.but(restarts=status.restarts.but(evaluator=status.restarts.evaluator + failed))
            draft.add_event("Warning" if failed else "Normal", "EvaluatorRestarting", why)
        case GiveUpEvaluation(why=why):
            if not holds(status.conditions, EVALUATION_GIVEN_UP):
                draft.add_event("Warning", EVALUATION_GIVEN_UP, why)
            status = set_condition(status, EVALUATION_GIVEN_UP, True, EVALUATION_GIVEN_UP, why, draft.now)
    if isinstance(decision, Wait):
        draft.look_again(decision.until)
    draft.status = status


def _counted(draft: Draft, status: Status, decision: Restart) -> Status:
    """With the incident, counted once, and its cause where that is a new one."""
    situation, tasks = draft.situation, decision.tasks
    stops = bool(tasks) and not trains_without(situation.group_job, tasks)
    incident, first, before = decision.incident, decision.first, status.last_failure
    was = decision.counted_as
    status = count_restart(status, incident.cause, decision.restarts, instead_of=was)
    if was is None:
        incident = incident.but(number=status.restarts.total)
    what = begun_by(first, status, incident.number, draft.now)
    if was is None:
        status = add_incident(status, what, draft.now)
        status = status if stops else goes_on_without(status)
    else:
        status = reopen_incident(status, incident.number) if stops else status
        if incident.cause != was:
            status = correct_incident(status, what, was=was, restarts=decision.restarts)
    status = status.remembering(incident=incident)
    if checkpoints_end(situation, tasks):
        status = status.but(checkpoint=None)
    if tasks and incident.cause == was:
        of = f"the failure of {before.task}" if before is not None else "the failure before it"
        told = before.exception if before is not None else None
        same = told is not None and first.in_status().exception == told
        how = f"{first.task.id} failed in the same way" if same else first.with_rule()
        text = f"{how}; it is replaced, and not counted apart from {of}"
        draft.add_event("Normal", Phase.RESTARTING.value, text)
        return status
    if tasks:
        draft.add_event("Warning", Phase.RESTARTING.value, f"{first.with_rule()}; {_consequence(situation, tasks)}")
    else:
        draft.add_event("Normal", Phase.RESTARTING.value, f"{first.with_rule()}: that is why training restarted")
    return status.but(last_failure=first.in_status())


def _consequence(situation: Situation, tasks: Sequence[Task]) -> str:
    if trains_without(situation.group_job, tasks):
        return "training goes on without it until it is back"
    step = situation.status.checkpoint_step
    return f"training restarts{goes_on_from(situation, tasks, step)}" if step >= 0 else "training restarts"


def trains_without(job: Job, absent: Sequence[Task]) -> bool:
    """Whether training continues while these tasks are away: a ParameterServer chief gives the steps to other workers.
    Worker 0 is the chief task if there is no chief."""
    replica = job.spec.replica_specs.worker
    workers = replica.replicas if replica else 0
    only_workers = all(task.role is Role.WORKER for task in absent)
    some_are_left = topology.chief_task(job) not in absent and len(absent) < workers
    return job.spec.strategy is Strategy.PARAMETER_SERVER and only_workers and some_are_left
