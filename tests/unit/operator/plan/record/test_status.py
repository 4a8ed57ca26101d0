# SPDX-License-Identifier: Apache-2.0
"""What each writer changes of a status."""

from __future__ import annotations

import pytest

from dtjob.api.phase import Phase
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.internal import Internal
from dtjob.api.status.restarts import Restarts
from dtjob.api.status.status import Status
from dtjob.plan.record.conditions import BLOCKED, SPEC_ACCEPTED
from dtjob.plan.record.failure import Cause
from dtjob.plan.record.status import bump_attempts, count_restart, refuse_spec, say_accepted, set_condition, set_phase
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at


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


def test_a_new_attempt_is_not_created_yet():
    status = Status(internal=Internal(attempts=Attempts(exceptions={"worker-0": 1}), all_created=True))
    tasks = [builders.task("worker-0"), builders.task("chief-0")]
    bumped = bump_attempts(status, tasks, tasks)
    assert bumped.internal.attempts == Attempts(exceptions={"worker-0": 2, "chief-0": 1})
    assert bumped.internal.all_created is False
    assert status.internal.attempts == Attempts(exceptions={"worker-0": 1})


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
def test_a_restart_is_counted_once_under_the_cause_known_last(
    causes: dict[str, int], cause: Cause, instead_of: Cause | None, total: int, expected: dict[str, int]
):
    before = Status(restarts=Restarts(total=sum(causes.values()), causes=causes, evaluator=4))
    after = count_restart(before, cause, instead_of)
    assert after.restarts == Restarts(total=total, causes=expected, evaluator=4)
    assert before.restarts.causes == causes
