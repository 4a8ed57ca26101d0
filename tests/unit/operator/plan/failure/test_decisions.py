# SPDX-License-Identifier: Apache-2.0
"""What each decision means for the status, and what users are told of it."""

from typing import Any

import pytest

from dtjob.api.status.attempts import Attempts
from dtjob.api.status.internal import Incident
from dtjob.api.status.restarts import LastFailure, Restarts
from dtjob.api.status.status import Status
from dtjob.plan.failure.decisions import (
    EvaluatorDecision,
    GiveUp,
    Renew,
    Restart,
    TrainingDecision,
    Wait,
    write_ahead,
)
from dtjob.plan.record.failure import Cause, Failure
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

WORKER, EVALUATOR = builders.task("worker-0"), builders.task("evaluator-0")
KILLED = Failure(WORKER, Cause.SIGNAL, NOW, "digits-worker-0-0", "node-1", "was killed (SIGKILL)", "", 137)
EVICTED = Failure(WORKER, Cause.DISRUPTION, NOW, "digits-worker-0-0", "node-1", "was disrupted (Evicted)", "")
NEW = Incident(started_at=at(5), cause=Cause.SIGNAL, not_before=at(5), charged=1, in_a_row=1, attempts=Attempts())
RUNNING = {
    "attempts": Attempts(exceptions={"worker-0": 1}),
    "restarts": Restarts(total=1, causes={"Signal": 1}),
    "all_created": True,
}


def write(
    decision: TrainingDecision | EvaluatorDecision, strategy: str = "MultiWorkerMirrored", **status: Any
) -> tuple[Status, list[str]]:
    job = builders.job(strategy, evaluator=True, ps=strategy == "ParameterServer")
    draft = builders.draft(job, **{**RUNNING, **status})
    write_ahead(draft, decision)
    after, told = draft.situation, draft.events
    return after.status, [f"{event.type} {event.reason}" for event in told]


def test_an_incident_that_begins_is_counted_with_its_first_failure():
    status, told = write(Restart((WORKER,), NEW, KILLED))
    assert (status.internal.attempts, status.internal.all_created) == (Attempts(exceptions={"worker-0": 2}), False)
    assert status.restarts == Restarts(total=2, causes={"Signal": 2})
    assert (status.internal.incident, status.last_failure) == (NEW.but(number=2), KILLED.in_status())
    assert [(one.number, one.task, one.reason) for one in status.incidents] == [(2, "worker-0", "Signal")]
    assert told == ["Warning Restarting"]


def test_another_failure_of_an_incident_has_an_event_and_is_not_counted():
    status, told = write(Restart((WORKER,), NEW, KILLED, Cause.SIGNAL), last_failure=LastFailure(task="worker-1"))
    assert (status.internal.attempts.of("worker-0"), status.restarts) == (2, RUNNING["restarts"])
    assert (status.internal.incident, status.last_failure) == (NEW, LastFailure(task="worker-1"))
    assert told == ["Normal Restarting"]


def test_a_stronger_cause_moves_the_count_and_has_an_event():
    moved, told = write(
        Restart((WORKER,), Incident(started_at=at(5), cause=Cause.DISRUPTION, not_before=at(5)), EVICTED, Cause.SIGNAL)
    )
    assert moved.restarts == Restarts(total=1, causes={"Disruption": 1})
    assert moved.last_failure == EVICTED.in_status()
    assert told == ["Warning Restarting"]


def test_a_cause_that_shows_later_moves_the_count_and_replaces_no_task():
    explained = Incident(started_at=at(5), cause=Cause.DISRUPTION, not_before=at(5), uncharged=1)
    status, told = write(Restart((), explained, EVICTED, Cause.SIGNAL), "ParameterServer")
    assert (status.internal.attempts, status.internal.all_created) == (RUNNING["attempts"], True)
    assert (status.restarts, status.internal.incident) == (Restarts(total=1, causes={"Disruption": 1}), explained)
    assert status.last_failure == EVICTED.in_status()
    assert told == ["Normal Restarting"]


def test_a_wait_before_the_jobs_end_writes_the_first_failure():
    status, told = write(Wait(at(60), KILLED), incident=NEW)
    assert (status.last_failure, status.internal.incident, told) == (KILLED.in_status(), NEW, [])


def test_a_recalled_task_gets_a_new_attempt_and_no_restart_is_counted():
    status, told = write(Renew((WORKER,)), incident=NEW)
    assert (status.internal.attempts, status.restarts, status.internal.incident) == (
        Attempts(exceptions={"worker-0": 2}),
        RUNNING["restarts"],
        NEW,
    )
    assert told == []


def test_an_evaluators_failure_is_counted_apart():
    status, told = write(Renew((EVALUATOR,), "evaluator-0 failed (exit code 1); training goes on", failed=True))
    assert status.internal.attempts == Attempts(exceptions={"worker-0": 1, "evaluator-0": 1})
    assert status.restarts == Restarts(total=1, causes={"Signal": 1}, evaluator=1)
    assert (status.internal.incident, status.last_failure) == (None, None)
    assert told == ["Warning EvaluatorRestarting"]


def test_an_evaluator_that_moves_has_an_event_and_is_not_counted():
    status, told = write(Renew((EVALUATOR,), "The evaluator moves"))
    assert (status.internal.attempts.of("evaluator-0"), status.restarts) == (1, RUNNING["restarts"])
    assert told == ["Normal EvaluatorRestarting"]


@pytest.mark.parametrize("decision", [None, Wait(at(2)), GiveUp(KILLED, "maxRestartsWithoutProgress")])
def test_a_decision_that_replaces_nothing_leaves_the_status_unchanged(decision: TrainingDecision):
    before, _ = write(None)
    assert write(decision) == (before, [])
    assert before.internal.all_created
