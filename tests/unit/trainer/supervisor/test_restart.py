# SPDX-License-Identifier: Apache-2.0
"""What follows on the end of a training process: exit codes in, decisions out."""

from typing import Any

import pytest

from dtjob_trainer.supervisor.restart import End, Ended, History, Restart, Stay, after_exit


def code_after(ended: Ended, history: History | None = None) -> int | None:
    """The exit code of the container; None for a restart in place."""
    decision, _ = after_exit(history or History(), ended, 0)
    return decision.code if isinstance(decision, End) else None


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (Ended(75, step=3), None),
        (Ended(-9, ended_by_us=True), None),
        (Ended(1, ended_by_us=True), 1),
        (Ended(143, terminating=True), 143),
        (Ended(75, terminating=True), 143),
        (Ended(-15, terminating=True), 143),
        (Ended(-9, terminating=True, ended_by_us=True), 143),
        (Ended(-9, terminating=True), 137),
        (Ended(1, terminating=True), 1),
        (Ended(0, terminating=True), 0),
        (Ended(0, chief_may_need_it=True, terminating=True), 0),
        (Ended(3, chief_may_need_it=True), 3),
    ],
)
def test_each_end_of_a_program_has_its_exit_code(ended: Ended, code: int | None) -> None:
    assert code_after(ended) == code


def test_every_exit_code_of_a_program_but_that_of_a_lost_peer_is_its_containers() -> None:
    """Rules of the failure policy are asked about the container's."""
    ends = {code: code_after(Ended(code)) for code in range(256)}
    assert {code for code, of_container in ends.items() if of_container != code} == {75}
    assert all(code_after(Ended(-number)) == 128 + number for number in range(1, 65))


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (Ended(0), 0),
        (Ended(75), 0),
        (Ended(-9, ended_by_us=True), 0),
        (Ended(2), 2),
        (Ended(0, chief_may_need_it=True), 0),
        (Ended(75, terminating=True), 143),
    ],
)
def test_each_end_has_its_exit_code_after_the_chief_task_has_finished(ended: Ended, code: int) -> None:
    assert code_after(ended, History(chief_finished=True)) == code


def run(*endings: Ended) -> list[str]:
    """`restart` or `end CODE` after each of the endings, one after the other."""
    history, outcomes = History(), []
    for ended in endings:
        decision, history = after_exit(history, ended, 0)
        outcomes.append(f"end {decision.code}" if isinstance(decision, End) else type(decision).__name__.lower())
    return outcomes


def test_a_finished_task_stays_while_the_chief_may_fail() -> None:
    assert after_exit(History(), Ended(0, chief_may_need_it=True), 0)[0] == Stay()


def test_three_lost_peers_without_a_step_between_them_end_the_container() -> None:
    assert run(Ended(75), Ended(75), Ended(75)) == ["restart", "restart", "end 76"]


def test_a_step_that_was_seen_before_is_no_progress() -> None:
    again = Ended(75, step=100)
    assert run(again, again, again, again) == ["restart"] * 3 + ["end 76"]


def test_a_process_that_makes_new_steps_is_restarted_without_limit() -> None:
    assert run(*(Ended(75, step=step) for step in range(20))) == ["restart"] * 20


def test_a_peer_that_is_known_to_be_gone_does_not_count() -> None:
    gone = Ended(75, peer_changed=True, cause="worker-1 was told to end")
    assert run(gone, gone, gone, gone) == ["restart"] * 4


def test_a_restart_says_when_and_why() -> None:
    decision, history = after_exit(History(), Ended(75, cause="worker-1 was lost"), 1_790_000_000)
    assert decision == Restart("worker-1 was lost", "2026-09-21T14:13:20Z")
    assert (history.restarts, history.last_restart) == (1, decision)
    decision, _ = after_exit(History(), Ended(75), 0)
    assert decision == Restart("a peer was lost", "1970-01-01T00:00:00Z")


def crash(number: int, trained_from: int | None, step: int | None = None, **more: Any) -> Ended:
    """The end of a process over this signal that had gone on from a step; it may be started again over two signals."""
    return Ended(-number, "worker-1", frozenset({9, 11}), step=step, trained_from=trained_from, **more)


def test_a_crash_after_new_steps_starts_the_process_again() -> None:
    decision, history = after_exit(History(), crash(11, 0, 40), 0)
    assert decision == Restart("worker-1 was killed (SIGSEGV)", "1970-01-01T00:00:00Z")
    assert (history.crash, history.restarts) == ("SIGSEGV", 1)
    assert history.crashes.to_json() == {"count": 1, "task": "worker-1", "signal": "SIGSEGV", "step": 40}
    _, history = after_exit(history, Ended(75, step=50), 0)
    assert (history.crash, history.crashes.count) == ("", 1), "the next process follows on a lost peer"


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (crash(9, None, 40), 137),  # no step of its own
        (crash(9, None), 137),
        (crash(6, 0, 40), 134),  # a rule is about it
        (crash(-9, 0, 40), 9),
        (crash(-1, 0, 40), 1),
        (crash(9, 0, 40, terminating=True), 137),
        (crash(9, 0, 40, stalled="stalled"), 77),
    ],
)
def test_crashes_that_must_not_be_restarted_in_place_end_the_container(ended: Ended, code: int) -> None:
    assert run(ended) == [f"end {code}"]


def test_a_crash_without_a_newer_checkpoint_since_the_last_one_ends_the_container() -> None:
    assert run(crash(9, 0, 40), crash(9, 0, 90)) == ["restart", "end 137"]
    assert run(crash(9, 20, 40), crash(9, 0, 10)) == ["restart", "end 137"], "the newer one was damaged"
    assert run(crash(9, 20, 40), crash(9, 40, 45), crash(9, 40, 60)) == ["restart", "restart", "end 137"]
    assert run(crash(9, 20, 40), Ended(75, step=60), crash(9, 20, 70)) == ["restart", "restart", "end 137"]


def test_a_crash_for_want_of_memory_says_so() -> None:
    decision, history = after_exit(History(), crash(9, 0, 40, out_of_memory=True), 0)
    assert isinstance(decision, Restart)
    assert decision.cause == "worker-1 was killed (SIGKILL, out of memory)"
    assert (history.crash, history.crashes.signal) == ("SIGKILL, out of memory",) * 2
    assert after_exit(History(), crash(11, 0, 40, out_of_memory=True), 0)[1].crash == "SIGSEGV"


def test_a_lost_peer_before_a_crash_is_nothing_to_the_crash() -> None:
    assert run(Ended(75, step=40), crash(9, 20, 35)) == ["restart", "restart"]


def test_a_crash_is_no_exit_without_progress() -> None:
    lost = Ended(75, step=5)
    assert run(lost, lost, lost, crash(9, 0, 6), lost, lost, lost) == ["restart"] * 6 + ["end 76"]


def test_a_failure_of_its_own_is_described() -> None:
    decision, _ = after_exit(History(), Ended(-11), 0)
    assert decision == End(139, "the training process ended with signal 11")
