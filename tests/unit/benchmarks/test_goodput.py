# SPDX-License-Identifier: Apache-2.0
"""Goodput and recovery by a log of steps."""

import pytest

from benchmarks.operators import goodput
from benchmarks.operators.goodput import Note


def process(name: str, first: int, last: int, begin: float, each: float = 1.0) -> list[Note]:
    """A process that notes a step after each so many seconds."""
    return [Note(name, step, begin + (number + 1) * each) for number, step in enumerate(range(first, last + 1))]


UNDISTURBED = process("a", 1, 100, 0.0)
RESTARTED = [*process("a", 1, 50, 0.0), *process("b", 41, 80, 60.0)]
"""Dies at 50 with step 50, goes on at step 40 at 60, and does the 51st at 71."""


def test_a_log_is_read_to_its_last_whole_line() -> None:
    assert goodput.read("a-1 1 0.5\na-1 2 1.5\na-1 3 2.") == [Note("a-1", 1, 0.5), Note("a-1", 2, 1.5)]
    assert goodput.read("") == []


def test_all_of_an_undisturbed_run_is_kept() -> None:
    assert goodput.kept_seconds(UNDISTURBED, 10.0, 90.0) == pytest.approx(80.0)
    assert goodput.kept_steps(UNDISTURBED, 10.0, 90.0) == 80
    assert goodput.rate(UNDISTURBED, 10.0, 90.0) == pytest.approx(1.0)


def test_a_step_that_was_done_again_counts_once_and_the_outage_not_at_all() -> None:
    # Of 100 s: 40 of the first process stand, and all 40 of the second.
    assert goodput.kept_seconds(RESTARTED, 0.0, 100.0) == pytest.approx(80.0)
    assert goodput.kept_steps(RESTARTED, 0.0, 100.0) == 80
    assert goodput.steps_done(RESTARTED, 0.0, 100.0) == 50 + 40


def test_notes_may_tell_of_many_steps_each() -> None:
    many = [Note(note.process, 20 * note.step, note.at) for note in RESTARTED]
    assert goodput.steps_done(many, 0.0, 100.0) == 20 * 90
    assert goodput.kept_steps(many, 0.0, 100.0) == 20 * 80


def test_only_the_part_within_the_window_counts() -> None:
    assert goodput.kept_seconds(RESTARTED, 20.0, 65.0) == pytest.approx(20.0 + 5.0)
    assert goodput.kept_seconds(UNDISTURBED, 10.5, 11.75) == pytest.approx(1.25)


def test_a_step_that_waited_counts_for_no_more_than_three() -> None:
    waited = [*process("a", 1, 20, 0.0), *process("a", 21, 40, 30.0)]
    assert goodput.kept_seconds(waited, 0.0, 50.0) == pytest.approx(39.0 + goodput.LONGEST)


def test_the_first_step_of_a_process_counts_as_others_do() -> None:
    assert goodput.kept_seconds([*UNDISTURBED, Note("b", 101, 150.0)], 120.0, 200.0) == pytest.approx(1.0)


def test_a_run_without_steps_keeps_nothing() -> None:
    assert goodput.kept_seconds([], 0.0, 10.0) == 0.0
    assert goodput.kept_steps([], 0.0, 10.0) == 0
    assert goodput.to_new_step([], 5.0) is None


def test_recovery_ends_with_a_step_that_was_not_done_before() -> None:
    assert goodput.to_new_step(RESTARTED, 50.0) == pytest.approx(71.0 - 50.0)
    assert goodput.to_new_step(RESTARTED[:60], 50.0) is None  # it has done the 50th again, and no more


def test_a_step_that_a_dying_process_still_logs_is_no_recovery() -> None:
    late = [*process("a", 1, 50, 0.0), Note("a", 51, 50.4), *process("b", 41, 80, 60.0)]
    assert goodput.to_new_step(late, 50.1) == pytest.approx(72.0 - 50.1)


def test_a_process_that_survives_has_its_next_step_at_once() -> None:
    assert goodput.to_new_step(UNDISTURBED, 50.2) == pytest.approx(0.8)


def test_a_failure_before_the_recovery_of_another_is_over_with_it() -> None:
    assert goodput.to_new_step(RESTARTED, 65.0) == pytest.approx(71.0 - 65.0)
