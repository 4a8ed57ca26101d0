# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.meetings: after which steps tasks meet, as steps turn slow and tasks part in time."""

import itertools
import random
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dtjob_trainer.strategies import meetings
from tests.unit.trainer.tasks import Tasks

TASKS = ("chief-0", "worker-0", "worker-1")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meetings, "SECONDS", 0.05)
    monkeypatch.setattr(meetings, "POLL_SECONDS", 0.005)
    monkeypatch.setattr(meetings, "_made", itertools.repeat(0))  # the tasks of a job are processes, each with its own


@pytest.fixture
def one() -> Iterator[Any]:
    each = meetings.Meetings(SimpleNamespace(tasks=1), 1, lambda: False)  # type: ignore[arg-type]
    yield each
    each.break_off()


def test_a_task_alone_meets_as_planned_or_at_once_if_it_is_urgent(one: Any) -> None:
    one.plan(10, 400)
    assert (one.left(10), one.left(100), one.due(100), one.due(410)) == (400, 310, False, True)
    one._is_urgent = lambda: True
    assert one.due(11)


class Steps:
    """Calls of steps that need all tasks, and that must be the same ones in all of them."""

    def __init__(self) -> None:
        self.all = Tasks(TASKS)
        self.met: list[list[int]] = [[] for _ in TASKS]

    def call(self, group: Any, step: int, steps: int) -> None:
        self.all.table(group.index, ("call", step, steps), [0.0])


def train(steps: Steps, group: Any, *, slow_from: int, last: int, seconds: float) -> None:
    """Plan meetings 100 steps apart. From a step on, each step of the first task takes so many seconds."""
    series, step = meetings.Meetings(group, 1, lambda: False), 0
    while step < last:
        size = min(series.left(step), last - step)
        if group.index == 0 and step >= slow_from:
            time.sleep(seconds * size)
        steps.call(group, step, size)
        step += size
        if series.due(step):
            assert series.meet(step, [step])[:, 0].tolist() == [step] * len(TASKS)
            steps.met[group.index].append(step)
            series.plan(step, 100)
    series.end(step)


@pytest.mark.parametrize(
    ("slow_from", "met"),
    [
        (1000, [1, 101, 201, 301]),
        # each call of 16 steps takes 0.1 s then, and a meeting is wanted after 0.05 s
        (101, [1, *range(101, 300, 16)]),
    ],
)
def test_tasks_meet_as_planned_and_after_the_present_call_if_steps_have_turned_slow(
    slow_from: int, met: list[int]
) -> None:
    steps, last = Steps(), met[-1] + 7
    steps.all.run(lambda group: train(steps, group, slow_from=slow_from, last=last, seconds=0.006))
    assert steps.met == [met] * 3


@pytest.mark.parametrize("seed", range(4))
def test_tasks_that_look_at_their_clocks_at_any_moment_take_the_same_calls_and_meetings(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pauses at random before and after calls, and where it is to meet. `Steps` fails if calls of tasks differ."""
    monkeypatch.setattr(meetings, "SECONDS", 0.002)
    monkeypatch.setattr(meetings, "POLL_SECONDS", 0.001)
    steps = Steps()

    def one(group: Any) -> list[int]:
        draw, met, step = random.Random(f"{seed} {group.index}"), list[int](), 0
        series = meetings.Meetings(group, 1, lambda: draw.random() < 0.01)
        while step < 2000:
            time.sleep(draw.choice([0, 0, 0, 0.001, 0.004]))
            size = min(series.left(step), 2000 - step)
            time.sleep(draw.choice([0, 0, 0.001, 0.003]))
            steps.call(group, step, size)
            step += size
            if series.due(step):
                time.sleep(draw.choice([0, 0.001, 0.003]))
                assert series.meet(step, [step])[:, 0].tolist() == [step] * len(TASKS)
                met.append(step)
                series.plan(step, 60 if step % 2 else 1)
        series.end(step)
        return met

    first, *others = steps.all.run(one)
    assert [first] * 2 == others
    assert len(first) > 2000 / 60


def test_a_clock_that_asks_for_a_meeting_just_before_the_planned_one_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second thread of the first task names a step between `due` and `meet`; those of the others, in the call."""
    monkeypatch.setattr(meetings, "SECONDS", 60.0)
    steps = Steps()

    def one(group: Any) -> list[float]:
        asked = threading.Event()
        series = meetings.Meetings(group, 1, asked.is_set)

        def ask() -> None:
            asked.set()
            while series._named is None:
                time.sleep(0.001)

        assert series.left(0) == 1
        if group.index > 0:
            ask()
        steps.call(group, 0, 1)
        assert series.due(1)
        if group.index == 0:
            ask()
        found: list[float] = series.meet(1, [7.0])[:, 0].tolist()
        series.break_off()
        return found

    assert steps.all.run(one) == [[7.0] * 3] * 3


def test_an_error_of_the_exchange_is_raised_where_training_goes_on(one: Any) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a peer is lost")

    series = meetings.Meetings(SimpleNamespace(tasks=2, of_each=broken), 1, lambda: True)  # type: ignore[arg-type]
    while series._named is None:
        time.sleep(0.001)
    with pytest.raises(RuntimeError, match="a peer is lost"):
        series.left(0)
    series.break_off()


def test_no_thread_is_left_after_the_end() -> None:
    before = set(threading.enumerate())
    steps = Steps()
    steps.all.run(lambda group: train(steps, group, slow_from=1000, last=30, seconds=0))
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread.name
