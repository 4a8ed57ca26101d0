# SPDX-License-Identifier: Apache-2.0
"""Decisions: which of them give tasks a new attempt."""

import pytest

from dtjob.api.status.internal import Incident
from dtjob.plan.failure.cause import vanished
from dtjob.plan.failure.decisions import (
    EvaluatorDecision,
    GiveUp,
    Renew,
    ReplaceEvaluator,
    Restart,
    TrainingDecision,
    Wait,
    replaced,
)
from dtjob.plan.record.failure import Cause
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

TASKS = (builders.task("worker-0"), builders.task("worker-1"))
FAILURE = vanished(TASKS[0], "digits-worker-0-0", NOW)
INCIDENT = Incident(started_at=NOW, cause=Cause.DELETED, not_before=NOW)


@pytest.mark.parametrize(
    "decision",
    [
        Restart(TASKS, INCIDENT, FAILURE),
        Restart(TASKS, INCIDENT, FAILURE, Cause.ERROR),
        Renew(TASKS),
        ReplaceEvaluator(TASKS, FAILURE),
    ],
)
def test_decisions_to_restart_replace_their_tasks(decision: TrainingDecision | EvaluatorDecision):
    assert replaced(decision) == TASKS


@pytest.mark.parametrize(
    "decision",
    [Wait(NOW), GiveUp(FAILURE, "maxRestartsWithoutProgress"), Restart((), INCIDENT, FAILURE, Cause.ERROR), None],
)
def test_decisions_to_wait_or_to_end_replace_no_tasks(decision: TrainingDecision | EvaluatorDecision):
    assert replaced(decision) == ()
