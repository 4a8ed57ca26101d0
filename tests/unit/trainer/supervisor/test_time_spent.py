# SPDX-License-Identifier: Apache-2.0
"""What the time of training went into, over the training processes of one supervisor."""

from typing import Any

from dtjob_trainer.supervisor.time_spent import TimeSpent


def told(spent: TimeSpent) -> dict[str, Any]:
    """The block, without what is zero."""
    return {name: value for name, value in spent.to_json().items() if value}


def trained(spent: TimeSpent, step: int, seconds: float, saved: float = 0.0) -> None:
    spent.heard({"step": step, "trainedSeconds": seconds, "savedSeconds": saved})


def process(spent: TimeSpent, restored: int) -> None:
    """A new training process, as far as its restore."""
    spent.process_started()
    spent.heard({"state": "starting"})
    spent.heard({"step": restored, "restoredStep": restored} if restored else {"restoredStep": 0, "checkpoint": None})
    spent.heard({"state": "training", "step": restored, "trainedSeconds": 0.0, "savedSeconds": 0.0})


def test_time_spent_is_empty_before_a_loop_begins() -> None:
    spent = TimeSpent()
    spent.process_started()
    spent.heard({"state": "starting", "step": 7, "trainedSeconds": 3.0, "savedSeconds": 0.0})
    assert spent.to_json() == {}


def test_steps_and_saves_of_a_process_are_counted() -> None:
    spent = TimeSpent()
    process(spent, 100)
    trained(spent, 150, 12.5, 2.5)
    assert spent.to_json() == {
        "from": 100, "keptSteps": 50, "kept": 10.0, "redoneSteps": 0, "redone": 0.0, "saving": 2.5,
    }  # fmt: skip


def test_a_restart_takes_back_the_share_of_the_steps_after_the_checkpoint() -> None:
    spent = TimeSpent()
    process(spent, 0)
    trained(spent, 80, 17.0, 1.0)
    spent.process_started()
    assert told(spent) == {"keptSteps": 80, "kept": 16.0, "saving": 1.0}  # until it has restored
    process(spent, 60)
    assert told(spent) == {"keptSteps": 60, "kept": 12.0, "redoneSteps": 20, "redone": 4.0, "saving": 1.0}
    trained(spent, 70, 3.0, 1.0)
    assert told(spent) == {"keptSteps": 70, "kept": 14.0, "redoneSteps": 20, "redone": 4.0, "saving": 2.0}


def test_steps_that_are_older_than_the_last_process_are_taken_back_too() -> None:
    spent = TimeSpent()
    process(spent, 0)
    trained(spent, 100, 100.0)
    process(spent, 100)
    trained(spent, 110, 50.0)  # five times as slow
    process(spent, 90)
    assert told(spent) == {"keptSteps": 90, "kept": 90.0, "redoneSteps": 20, "redone": 60.0}


def test_a_slow_process_that_dies_early_costs_its_own_time_and_not_the_average() -> None:
    spent = TimeSpent()
    process(spent, 0)
    trained(spent, 1000, 100.0)
    for _ in range(3):
        process(spent, 1000)
        trained(spent, 1001, 60.0)
    process(spent, 1000)
    assert told(spent) == {"keptSteps": 1000, "kept": 100.0, "redoneSteps": 3, "redone": 180.0}


def test_the_time_of_a_process_without_a_step_counts_as_redone() -> None:
    spent = TimeSpent()
    process(spent, 0)
    trained(spent, 10, 5.0)
    process(spent, 10)
    trained(spent, 10, 7.0)
    process(spent, 10)
    assert told(spent) == {"keptSteps": 10, "kept": 5.0, "redone": 7.0}


def test_without_a_checkpoint_all_is_taken_back_a_second_loop_too() -> None:
    spent = TimeSpent()
    process(spent, 0)
    trained(spent, 10, 5.0)
    spent.heard({"restoredStep": 0})  # another fit of the same process takes nothing back
    trained(spent, 4, 2.0)
    assert told(spent) == {"keptSteps": 14, "kept": 7.0}
    process(spent, 0)
    assert told(spent) == {"redoneSteps": 14, "redone": 7.0}


def test_a_checkpoint_before_the_first_one_moves_where_it_came_from() -> None:
    spent = TimeSpent()
    process(spent, 100)
    trained(spent, 110, 5.0)
    process(spent, 50)
    assert spent.to_json()["from"] == 50
    assert told(spent) == {"from": 50, "redoneSteps": 10, "redone": 5.0}


def test_a_reported_time_that_is_no_time_is_ignored() -> None:
    spent = TimeSpent()
    process(spent, 0)
    trained(spent, 10, 5.0)
    for odd in (float("nan"), float("inf"), -1.0, "5", None, True):
        spent.heard({"trainedSeconds": odd, "savedSeconds": 0.0})
    assert told(spent) == {"keptSteps": 10, "kept": 5.0}
