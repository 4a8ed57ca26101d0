# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.answers: an answer of the rendezvous in, what to do out."""

from dataclasses import replace

import pytest

from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.supervisor.answers import (
    NOTICE_SECONDS,
    Action,
    GiveUp,
    Go,
    Incarnation,
    Kill,
    Show,
    StayNoLonger,
    TellOfPreemption,
    on_answer,
)
from dtjob_trainer.supervisor.restart import History, Restart

WAITING = Incarnation(2)
RUNNING = Incarnation(2, phase="running")
PREEMPTED = Incarnation(2, phase="preempted")
OVER = Incarnation(2, phase="running", generation_over=True)
ENDED = Incarnation(2, phase="running", ended=True)

GO = Answer("go", 4, chief="s")
RESTART = Answer("restart", 3, "worker-1 was lost")
DONE = Answer("done")


def after(
    now: Incarnation,
    answer: Answer,
    history: History | None = None,
    *,
    asked_by: int = 2,
    terminating: bool = False,
    starting: bool = False,
) -> tuple[tuple[Action, ...], History, Incarnation]:
    asked = Registration("uid", "hash", "worker-0", 0, "x", asked_by, now.phase, generation=3)
    return on_answer(history or History(), now, asked, answer, terminating=terminating, starting=starting)


@pytest.mark.parametrize(
    ("now", "answer", "actions"),
    [
        (WAITING, Answer("wait", message="waiting for worker-1"), (Show("waiting for worker-1"),)),
        (WAITING, Answer("refused", message="another job's"), (Show("another job's"),)),
        (WAITING, GO, (Go(4),)),
        (WAITING, DONE, (Kill(),)),
        (WAITING, RESTART, ()),
        (RUNNING, Answer("continue"), (Show(""),)),
        (RUNNING, GO, ()),
        (RUNNING, DONE, ()),
        (RUNNING, RESTART, (GiveUp(3, "worker-1 was lost", NOTICE_SECONDS),)),
        (OVER, RESTART, ()),
        (PREEMPTED, RESTART, ()),
        (PREEMPTED, DONE, ()),
        (PREEMPTED, Answer("continue", preempted=("worker-1",)), (Show(""),)),
        (RUNNING, Answer("continue", preempted=("worker-1",)), (Show(""), TellOfPreemption("worker-1"))),
        (
            RUNNING,
            Answer("continue", preempted=("worker-1", "worker-2")),
            (Show(""), TellOfPreemption("worker-1"), TellOfPreemption("worker-2")),
        ),
        (ENDED, Answer("wait", message="waiting for worker-1"), ()),
        (ENDED, GO, ()),
        (ENDED, DONE, (StayNoLonger(None),)),
        (ENDED, RESTART, (StayNoLonger("worker-1 was lost"),)),
        (ENDED, Answer("continue", preempted=("worker-1",)), ()),
    ],
)
def test_each_answer_gives_its_actions(now: Incarnation, answer: Answer, actions: tuple[Action, ...]) -> None:
    assert after(now, answer)[0] == actions


@pytest.mark.parametrize("now", [WAITING, RUNNING, ENDED])
@pytest.mark.parametrize("answer", [GO, RESTART, DONE, Answer("wait"), Answer("continue", preempted=("worker-1",))])
def test_an_answer_to_an_earlier_process_has_no_effect(now: Incarnation, answer: Answer) -> None:
    actions, _, later = after(now, answer, asked_by=1)
    assert (actions, later) == ((), now)


def test_the_answer_that_training_is_done_is_remembered() -> None:
    for now in (WAITING, RUNNING, ENDED):
        assert after(now, DONE)[1].chief_finished
        assert after(now, DONE, asked_by=1)[1].chief_finished
    assert not after(RUNNING, RESTART)[1].chief_finished


def test_a_terminating_task_does_not_go() -> None:
    assert after(WAITING, GO, terminating=True) == ((), History(), WAITING)


def test_a_restart_does_not_wait_for_a_process_that_starts() -> None:
    assert after(RUNNING, RESTART, starting=True)[0] == (GiveUp(3, "worker-1 was lost", 0.0),)


def test_a_go_is_remembered_with_who_gave_it() -> None:
    _, history, now = after(WAITING, GO)
    assert (history.generation, history.chief, now.phase) == (4, "s", "running")


def test_the_end_of_a_generation_is_sent_once_and_the_first_cause_stays() -> None:
    _, history, now = after(RUNNING, RESTART)
    assert (now.generation_over, now.cause) == (True, "worker-1 was lost")
    assert after(now, replace(RESTART, message="another"), history) == ((), history, now)
    known = replace(RUNNING, cause="worker-1 was told to end")
    assert after(known, RESTART)[2].cause == "worker-1 was told to end"


def test_each_preemption_is_passed_on_once() -> None:
    first = Answer("continue", preempted=("worker-1",))
    _, history, now = after(RUNNING, first)
    assert (now.preempted, now.cause) == (("worker-1",), "worker-1 was told to end")
    assert after(now, first, history)[0] == (Show(""),)
    second = replace(first, preempted=("worker-1", "worker-2"))
    actions, _, now = after(now, second, history)
    assert actions == (Show(""), TellOfPreemption("worker-2"))
    assert (now.preempted, now.cause) == (("worker-1", "worker-2"), "worker-2 was told to end")


LOST = Restart("a peer was lost", "2026-11-21T10:00:00Z")
RESTARTED = History(without_progress=2, restarts=1, last_restart=LOST, chief="s")


@pytest.mark.parametrize(
    ("answer", "without_progress", "cause"),
    [
        (replace(GO, message="worker-1 was lost", changed=("worker-1",)), 0, "worker-1 was lost"),
        (replace(GO, changed=("worker-1",)), 0, "a peer was lost"),
        (replace(GO, message="worker-1 lost a peer"), 2, "a peer was lost"),
        (replace(GO, chief="another"), 0, "the chief task was lost"),
        (
            replace(GO, chief="another", message="worker-1 was lost", changed=("worker-1",)),
            0,
            "the chief task was lost",
        ),
    ],
)
def test_the_next_go_sets_the_cause_of_the_last_restart(answer: Answer, without_progress: int, cause: str) -> None:
    _, history, _ = after(WAITING, answer, RESTARTED)
    assert history.last_restart == replace(LOST, cause=cause)
    assert (history.without_progress, history.restarts) == (without_progress, 1)


def test_a_first_go_sets_no_cause_of_a_restart() -> None:
    _, history, _ = after(WAITING, replace(GO, message="worker-1 was lost", changed=("worker-1",)))
    assert history.last_restart is None
