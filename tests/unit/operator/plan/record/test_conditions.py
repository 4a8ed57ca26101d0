# SPDX-License-Identifier: Apache-2.0
"""Conditions: how they change, and what phase they say."""

from __future__ import annotations

import pytest

from dtjob.api.phase import Phase
from dtjob.plan.record.conditions import (
    BLOCKED,
    RUNNING,
    SPEC_ACCEPTED,
    PhaseStatus,
    condition,
    holds,
    in_phase,
    running_since,
    stopped_running,
    with_condition,
)
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.phase_said import phase_said_by


def test_a_condition_that_never_held_is_left_out():
    assert with_condition([], BLOCKED, False, "Created", "", NOW) == ()


def test_the_transition_time_moves_with_the_status_only():
    once = with_condition([], RUNNING, True, "AllTasksRunning", "", NOW)
    again = with_condition(once, RUNNING, True, "AllTasksRunning", "worker-0 waits", at(5))
    assert (again[0].message, again[0].last_transition_time) == ("worker-0 waits", NOW)
    over = with_condition(again, RUNNING, False, "Error", "", at(9))
    assert (over[0].status, over[0].last_transition_time) == ("False", at(9))


def test_a_condition_without_news_is_unchanged():
    once = with_condition([], RUNNING, True, "AllTasksRunning", "", NOW, 1)
    assert with_condition(once, RUNNING, True, "AllTasksRunning", "", at(5), 1) is once


def test_a_changed_condition_keeps_its_place_and_the_old_list_is_unchanged():
    both = with_condition(with_condition([], RUNNING, True, "a", "", NOW), BLOCKED, True, "b", "", NOW)
    changed = with_condition(both, RUNNING, False, "c", "", at(1))
    assert [one.type for one in changed] == [RUNNING, BLOCKED]
    assert both[0].holds


def test_a_condition_says_of_which_generation_it_speaks():
    once = with_condition([], RUNNING, True, "AllTasksRunning", "", NOW, 1)
    again = with_condition(once, RUNNING, True, "AllTasksRunning", "", at(5), 2)
    assert (again[0].observed_generation, again[0].last_transition_time) == (2, NOW)


def test_a_condition_that_is_not_known_is_unknown_and_may_be_set_from_the_start():
    assert with_condition([], BLOCKED, None, "Silent", "", NOW) == ()
    unknown = with_condition([], BLOCKED, None, "Silent", "", NOW, always=True)
    no = with_condition(unknown, BLOCKED, False, "Created", "", at(5))
    assert [(one.status, one.last_transition_time) for one in (*unknown, *no)] == [("Unknown", NOW), ("False", at(5))]


def test_reasons_and_messages_fit_the_schema():
    made = with_condition([], BLOCKED, True, "two words", "m" * 5000, NOW)
    assert (made[0].reason, len(made[0].message)) == ("Unknown", 4096)


def test_the_condition_running_gives_the_times_since_when_training_runs_or_stopped():
    running = with_condition([], RUNNING, True, "AllTasksRunning", "", at(5))
    stopped = with_condition(running, RUNNING, False, "Error", "", at(9))
    assert (running_since(running), running_since(stopped), running_since(())) == (at(5), None, None)
    found = [stopped_running(one, at(20)) for one in (running, stopped, ())]
    assert found == [at(20), at(9), None]


def test_a_condition_that_became_false_does_not_hold():
    held = with_condition([], BLOCKED, True, "CannotCreate", "quota", NOW)
    assert holds(held, BLOCKED)
    assert not holds(held, RUNNING)
    assert not holds(with_condition(held, BLOCKED, False, "Created", "", at(1)), BLOCKED)


LIFE = (
    PhaseStatus(Phase.PENDING, "WaitingForPods", "chief-0 waits"),
    PhaseStatus(Phase.RUNNING, "AllTasksRunning", ""),
    PhaseStatus(Phase.RESTARTING, "Error", "worker-1 failed"),
    PhaseStatus(Phase.RUNNING, "WorkersMissing", ""),
    PhaseStatus(Phase.SUSPENDED, "JobSuspended", "spec.suspend is true"),
    PhaseStatus(Phase.PENDING, "WaitingForPods", ""),
)


@pytest.mark.parametrize(
    "end", [PhaseStatus(Phase.SUCCEEDED, "Completed", "training has ended"), PhaseStatus(Phase.FAILED, "No", "")]
)
def test_the_phase_and_its_reason_follow_from_the_conditions(end: PhaseStatus):
    conditions = in_phase((), LIFE[0], NOW)
    for number, said in enumerate((*LIFE, end)):
        conditions = in_phase(conditions, said, at(number), 1)
        assert phase_said_by(conditions) == said
    assert sum(one.holds for one in conditions) == 1


def test_a_condition_that_blocks_a_job_gives_the_reason_of_its_phase():
    waits = in_phase((), LIFE[0], NOW)
    blocked = with_condition(waits, BLOCKED, True, "CannotCreate", "quota", NOW)
    assert phase_said_by(blocked) == (Phase.PENDING, "CannotCreate", "quota")
    refused = with_condition(blocked, SPEC_ACCEPTED, False, "InvalidSpec", "spec.strategy", NOW, always=True)
    assert phase_said_by(refused) == (Phase.PENDING, "InvalidSpec", "spec.strategy")


def test_a_condition_that_held_says_why_it_does_no_more_and_then_stays_as_it_is():
    suspended = in_phase((), LIFE[4], NOW)
    resumed = with_condition(suspended, "Suspended", False, "JobResumed", "Job resumed", at(1))
    said = condition(in_phase(resumed, LIFE[1], at(2)), "Suspended")
    assert said is not None
    assert (said.reason, said.message, said.last_transition_time) == ("JobResumed", "Job resumed", at(1))
