"""Conditions in the Kubernetes form."""

from __future__ import annotations

from dtjob.api.phase import Phase
from dtjob.plan.conditions import BLOCKED, holds, running_since, with_condition
from tests.unit.operator.builders import NOW, at


def test_a_condition_that_never_held_is_left_out():
    assert with_condition([], BLOCKED, False, "Created", "", NOW) == ()


def test_the_transition_time_moves_with_the_status_only():
    once = with_condition([], Phase.RUNNING, True, "AllTasksRunning", "", NOW)
    again = with_condition(once, Phase.RUNNING, True, "AllTasksRunning", "worker-0 waits", at(5))
    assert (again[0]["message"], again[0]["lastTransitionTime"]) == ("worker-0 waits", "2026-11-21T10:00:00Z")
    over = with_condition(again, Phase.RUNNING, False, "Error", "", at(9))
    assert (over[0]["status"], over[0]["lastTransitionTime"]) == ("False", "2026-11-21T10:00:09Z")


def test_others_keep_their_place_and_the_old_list_is_left_alone():
    both = with_condition(with_condition([], Phase.RUNNING, True, "a", "", NOW), BLOCKED, True, "b", "", NOW)
    changed = with_condition(both, Phase.RUNNING, False, "c", "", at(1))
    assert [one["type"] for one in changed] == [Phase.RUNNING, BLOCKED]
    assert both[0]["status"] == "True"


def test_a_condition_says_of_which_generation_it_speaks():
    once = with_condition([], Phase.RUNNING, True, "AllTasksRunning", "", NOW, 1)
    again = with_condition(once, Phase.RUNNING, True, "AllTasksRunning", "", at(5), 2)
    assert (again[0]["observedGeneration"], again[0]["lastTransitionTime"]) == (2, "2026-11-21T10:00:00Z")


def test_what_nobody_knows_is_unknown_and_may_be_said_from_the_start():
    assert with_condition([], BLOCKED, None, "Silent", "", NOW) == ()
    unknown = with_condition([], BLOCKED, None, "Silent", "", NOW, always=True)
    no = with_condition(unknown, BLOCKED, False, "Created", "", at(5))
    assert [(one["status"], one["lastTransitionTime"][-3:]) for one in (*unknown, *no)] == [
        ("Unknown", "00Z"),
        ("False", "05Z"),
    ]


def test_since_when_training_runs():
    running = with_condition([], Phase.RUNNING, True, "AllTasksRunning", "", at(5))
    assert running_since(running) == at(5)
    assert running_since(with_condition(running, Phase.RUNNING, False, "Error", "", at(9))) is None
    assert running_since(()) is None


def test_one_that_held_once_holds_no_more():
    held = with_condition([], BLOCKED, True, "CannotCreate", "quota", NOW)
    assert holds(held, BLOCKED)
    assert not holds(held, "Running")
    assert not holds(with_condition(held, BLOCKED, False, "Created", "", at(1)), BLOCKED)
