# SPDX-License-Identifier: Apache-2.0
"""What each writer changes of a status, also where its times are later than now."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from dtjob.api.phase import Phase
from dtjob.api.status.activity import Activity
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.condition import Condition, Conditions
from dtjob.api.status.internal import Errors, Incident
from dtjob.api.status.progress import Restored
from dtjob.api.status.restarts import Restarts
from dtjob.api.status.status import Status
from dtjob.plan.record.failure import Cause
from dtjob.plan.record.status import (
    BLOCKED,
    RUNNING,
    SPEC_ACCEPTED,
    after_set_back,
    condition,
    count_restart,
    refuse_spec,
    running_since,
    say_accepted,
    set_condition,
    set_phase,
    stopped_running,
)
from tests.unit.operator.builders import NOW, at


def with_condition(
    conditions: Iterable[Condition],
    type_: str,
    holds: bool | None,
    reason: str,
    message: str,
    now: datetime,
    always: bool = False,
) -> Conditions:
    """The conditions of a status with one of them set."""
    status = Status(conditions=tuple(conditions))
    return set_condition(status, type_, holds, reason, message, now, always=always).conditions


def held(status: Status) -> dict[str, str]:
    return {one.type: one.status for one in status.conditions}


NOTHING = {"Running": "False", "Suspended": "False", "Complete": "False", "Failed": "False"}


def test_a_phase_has_its_condition_and_takes_it_from_the_others():
    pending = set_phase(Status(), Phase.PENDING, "WaitingForPods", "no GPU", NOW)
    assert (pending.phase, pending.reason, pending.message) == (Phase.PENDING, "WaitingForPods", "no GPU")
    assert held(pending) == NOTHING
    running = set_phase(pending, Phase.RUNNING, "AllTasksRunning", "", at(5))
    restarting = set_phase(running, Phase.RESTARTING, "Error", "", at(9))
    assert held(running) == {**NOTHING, "Running": "True"}
    assert held(restarting) == {**NOTHING, "Restarting": "True"}
    complete = set_phase(restarting, Phase.SUCCEEDED, "Completed", "training has ended", at(20))
    assert held(complete) == {**NOTHING, "Restarting": "False", "Complete": "True"}


def test_texts_are_cut_to_what_the_schema_takes():
    long = set_phase(Status(), Phase.PENDING, "x" * 2000, "y" * 9000, NOW)
    assert (len(long.reason or ""), len(long.message or "")) == (1024, 4096)
    assert Status.read(long.to_json()) == long
    (made,) = with_condition([], BLOCKED, True, "two words", "m" * 5000, NOW)
    assert (made.reason, len(made.message)) == ("Unknown", 4096)


def test_a_spec_that_can_be_read_again_is_accepted():
    refused = set_condition(Status(), SPEC_ACCEPTED, False, "InvalidSpec", "spec.strategy", NOW, always=True)
    assert held(say_accepted(refused, at(5))) == {"SpecAccepted": "True"}
    assert say_accepted(Status(), NOW).conditions == ()


def test_a_spec_that_was_never_read_gives_all_conditions():
    refused = refuse_spec(Status(), 3, "spec.strategy: no", NOW)
    assert held(refused) == {**NOTHING, "SpecAccepted": "False"}
    assert (refused.phase, refused.reason, refused.message) == (Phase.PENDING, "InvalidSpec", "spec.strategy: no")
    assert (refused.start_time, refused.observed_generation) == (None, 3)
    assert {one.observed_generation for one in refused.conditions} == {3}
    assert refuse_spec(refused, 3, "spec.strategy: no", at(60)) == refused


def test_a_spec_that_cannot_be_read_changes_no_end():
    over = set_phase(Status(), Phase.FAILED, "Error", "it failed", NOW)
    refused = refuse_spec(over, 2, "spec.strategy: no", at(5))
    assert (refused.phase, refused.reason, refused.message) == (Phase.FAILED, "Error", "it failed")
    assert held(refused)["SpecAccepted"] == "False"


def test_a_life_starts_once_and_ends_once():
    first = set_phase(Status(), Phase.PENDING, "WaitingForPods", "", NOW)
    second = set_phase(first, Phase.RUNNING, "AllTasksRunning", "", at(5))
    assert (second.start_time, second.completion_time, second.ended) == (NOW, None, False)
    for end in (Phase.SUCCEEDED, Phase.FAILED):
        over = set_phase(second, end, "Completed", "", at(9.7))
        assert (over.completion_time, over.ended) == (at(9), True)  # as it is read back
        assert Status.read(over.to_json()) == over


def test_a_condition_that_is_no_phase_leaves_the_phase_alone():
    running = set_phase(Status(), Phase.RUNNING, "AllTasksRunning", "", NOW)
    blocked = set_condition(running, BLOCKED, True, "CannotCreate", "quota", at(1))
    assert held(blocked) == {**NOTHING, "Running": "True", "Blocked": "True"}
    assert (blocked.phase, blocked.reason) == (Phase.RUNNING, "AllTasksRunning")


@pytest.mark.parametrize(
    ("causes", "cause", "instead_of", "total", "expected"),
    [
        ({}, Cause.ERROR, None, 1, {"Error": 1}),
        ({"Error": 2}, Cause.ERROR, None, 3, {"Error": 3}),
        ({"Error": 2}, Cause.DELETED, None, 3, {"Error": 2, "Deleted": 1}),
        ({"Error": 2}, Cause.DISRUPTION, Cause.ERROR, 2, {"Error": 1, "Disruption": 1}),
        ({"Error": 1}, Cause.DISRUPTION, Cause.ERROR, 1, {"Disruption": 1}),
        ({"Error": 1}, Cause.ERROR, Cause.ERROR, 1, {"Error": 1}),
        ({"Ours": 1, "Error": 1}, Cause.ERROR, None, 3, {"Ours": 1, "Error": 2}),
    ],
)
def test_a_restart_is_counted_once_under_the_cause_known_last(causes, cause, instead_of, total, expected):
    before = Status(restarts=Restarts(total=sum(causes.values()), causes=causes, evaluator=4))
    after = count_restart(before, cause, instead_of=instead_of)
    assert after.restarts == Restarts(total=total, causes=expected, evaluator=4)
    assert before.restarts.causes == causes


def test_the_transition_time_moves_with_the_status_only():
    once = with_condition([], RUNNING, True, "AllTasksRunning", "", NOW)
    again = with_condition(once, RUNNING, True, "AllTasksRunning", "worker-0 waits", at(5))
    assert (again[0].message, again[0].last_transition_time) == ("worker-0 waits", NOW)
    over = with_condition(again, RUNNING, False, "Error", "", at(9))
    assert (over[0].status, over[0].last_transition_time) == ("False", at(9))


def test_a_condition_that_is_not_known_is_unknown_and_may_be_set_from_the_start():
    assert with_condition([], BLOCKED, None, "Silent", "", NOW) == ()
    unknown = with_condition([], BLOCKED, None, "Silent", "", NOW, always=True)
    no = with_condition(unknown, BLOCKED, False, "Created", "", at(5))
    assert [(one.status, one.last_transition_time) for one in (*unknown, *no)] == [("Unknown", NOW), ("False", at(5))]


def test_the_condition_running_gives_the_times_since_when_training_runs_or_stopped():
    running = with_condition([], RUNNING, True, "AllTasksRunning", "", at(5))
    stopped = with_condition(running, RUNNING, False, "Error", "", at(9))
    assert (running_since(running), running_since(stopped), running_since(())) == (at(5), None, None)
    found = [stopped_running(one, at(20)) for one in (running, stopped, ())]
    assert found == [at(20), at(9), None]


def test_a_condition_that_held_says_why_it_does_no_more_and_then_stays_as_it_is():
    suspended = set_phase(Status(), Phase.SUSPENDED, "JobSuspended", "spec.suspend is true", NOW)
    resumed = set_condition(suspended, "Suspended", False, "JobResumed", "Job resumed", at(1))
    said = condition(set_phase(resumed, Phase.RUNNING, "AllTasksRunning", "", at(2)).conditions, "Suspended")
    assert (said.reason, said.message, said.last_transition_time) == ("JobResumed", "Job resumed", at(1))


HOUR = timedelta(hours=1)


def by_a_clock_ahead(hours: int = 0) -> Status:
    """A job that restored a checkpoint and then failed, by a clock that is so many hours ahead."""
    ahead = hours * HOUR
    errors = Errors(began=NOW + ahead, count=1, attempts=Attempts())
    incident = Incident(
        started_at=at(100) + ahead, cause="Error", not_before=at(120) + ahead, ends_at=at(160) + ahead, errors=errors
    )
    active = Activity(since=at(10) + ahead, seconds=5, all_ran_time=at(20) + ahead)
    restored = Restored(step=3, time=at(30) + ahead)
    return Status(active=active, restored=restored).remembering(incident=incident)


def test_a_status_whose_incident_has_begun_stays():
    assert after_set_back(by_a_clock_ahead(), at(100)) == by_a_clock_ahead()


def test_all_times_that_a_wrong_clock_gave_move_by_the_same_duration():
    assert after_set_back(by_a_clock_ahead(hours=1), at(100)) == by_a_clock_ahead()


def test_times_of_the_right_clock_stay():
    began = Activity(since=at(10))
    moved = after_set_back(by_a_clock_ahead(hours=1).but(active=began), at(100))
    assert moved.active == began
