"""Write-ahead: what a decision means for the status, which is written before anything is done about it.

A crash after that costs nothing: the next plan finds tasks at attempts that have no pods yet, and makes those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dtjob.api.phase import Phase
from dtjob.objects.topology import Task
from dtjob.plan.actions import Event
from dtjob.plan.decisions import (
    Begin,
    EvaluatorDecision,
    FollowChief,
    Join,
    ReplaceEvaluator,
    TrainingDecision,
    replaced,
)
from dtjob.plan.policies.checkpoints_kept import checkpoints_end, goes_on_from
from dtjob.plan.policies.restart import trains_without
from dtjob.plan.situation import Situation
from dtjob.plan.status import Status, bump_attempts, count_restart

Written = tuple[Situation, list[Event]]


def write_ahead(situation: Situation, decision: TrainingDecision | EvaluatorDecision) -> Written:
    """The situation with the new attempts, counts and cause in its status, and what users are told."""
    status = situation.status
    if tasks := replaced(decision):
        status = bump_attempts(status, tasks)
    match decision:
        case Begin(incident=incident):
            return _restarting(situation, count_restart(status, incident.cause), decision)
        case Join(incident=incident, counted_as=counted_as):
            return _restarting(situation, count_restart(status, incident.cause, counted_as), decision)
        case ReplaceEvaluator(failure=failure):
            status = replace(status, restarts=replace(status.restarts, evaluator=status.restarts.evaluator + 1))
            told = Event("Warning", "EvaluatorRestarting", f"{failure.sentence()}; training goes on")
            return situation.with_status(status), [told]
        case FollowChief():
            told = Event("Normal", "EvaluatorRestarting", "The evaluator moves with the chief, whose volume it mounts")
            return situation.with_status(status), [told]
        case _:
            return situation.with_status(status), []


def _restarting(situation: Situation, status: Status, decision: Begin | Join) -> Written:
    """With the incident, and its cause where that is a new one."""
    status, first = replace(status, incident=decision.incident), decision.first
    if checkpoints_end(situation, decision.tasks):
        status = replace(status, progress=replace(status.progress, checkpoint={}))
    if first is None:
        return situation.with_status(status), []
    told = Event("Warning", Phase.RESTARTING.value, f"{first.sentence()}; {_consequence(situation, decision.tasks)}")
    return situation.with_status(replace(status, first_failure=first.to_json())), [told]


def _consequence(situation: Situation, tasks: Sequence[Task]) -> str:
    if trains_without(situation.job, tasks):
        return "training goes on without it until it is back"
    step = situation.status.progress.checkpoint_step
    return f"training restarts{goes_on_from(situation, tasks, step)}" if step >= 0 else "training restarts"
