# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.loops.control: at which steps tasks agree, and on what."""

import itertools
import time
from types import SimpleNamespace
from typing import Any

import pytest

from dtjob_trainer.strategies import meetings
from tests.unit.trainer.tasks import Tasks

np = pytest.importorskip("numpy")
control = pytest.importorskip("dtjob_trainer.loops.control")


class Group:
    """Two tasks or one. The other one is at the same step, with the numbers `theirs`."""

    members = ("chief-0", "worker-0")

    def __init__(self, tasks: int = 2, index: int = 0, theirs: tuple[float, ...] = (0.0,) * 6) -> None:
        self.tasks, self.index, self._theirs = tasks, index, theirs
        self.meetings = 0

    def of_each(self, mine: Any, key: int | None = None) -> Any:
        self.meetings += 1
        theirs = self._theirs if key is None else [mine[0], 0.0, *self._theirs[: len(mine) - 2]]
        rows = [mine] if self.tasks == 1 else [mine, np.array(theirs)]
        return np.stack(rows if self.index == 0 else rows[::-1])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    time = SimpleNamespace(now=100.0)
    monkeypatch.setattr(control.time, "monotonic", lambda: time.now)
    return time


def shutdown(requested: bool = False) -> Any:
    return SimpleNamespace(requested=requested)


def begun(group: Any, asked: Any, every_seconds: float | None = None, step: int = 0, **others: Any) -> Any:
    return control.Control(group, asked, every_seconds, step, **others)


@pytest.mark.parametrize(
    ("speed", "steps", "alone"), [(0.0, 1, 1), (3.9, 1, 1), (8.0, 2, 2), (400.0, 100, 100), (1e6, 100, 1000)]
)
def test_agreements_are_so_many_steps_apart_as_fit_between_two(speed: float, steps: int, alone: int) -> None:
    assert control.steps_until(speed, 0.25, 2) == steps
    assert control.steps_until(speed, 0.25, 1) == alone


def test_agreements_are_a_second_apart_if_a_loss_is_fetched_from_a_worker(clock: SimpleNamespace) -> None:
    """The speed is that of steps that are done, and not of those that are handed out."""
    run = begun(Group(), shutdown(), handed_out=True)
    run.agree(16, 0.5, 1)
    clock.now += 0.1
    assert run.agree(24, 0.5, 9).steps_per_second == pytest.approx(80.0)
    assert not run.due(24 + 79)
    assert run.due(24 + 80)


def test_the_first_agreement_is_after_the_first_step_and_the_next_ones_follow_the_speed(clock: SimpleNamespace) -> None:
    run = begun(Group(), shutdown(), step=10)
    assert not run.due(10)
    assert run.due(11)
    clock.now += 5.0  # tracing, of which nothing is learnt
    assert run.agree(11, 0.5) == control.Agreement(False, False, 0.5, 0.0)
    assert run.due(12)
    clock.now += 0.1
    agreement = run.agree(20, 0.5)
    assert agreement.steps_per_second == pytest.approx(90.0)
    assert not run.due(20 + 21)
    assert run.due(20 + 22)


def test_a_task_that_trains_alone_answers_a_stop_at_once_and_others_wait_for_all(clock: SimpleNamespace) -> None:
    for tasks, answers in ((1, True), (2, False)):
        asked = shutdown()
        run = begun(Group(tasks), asked)
        run.agree(1, 0.0)
        clock.now += 0.01
        run.agree(2, 0.0)
        asked.requested = True
        assert run.due(3) is answers


def test_calls_of_a_validation_grow_with_what_is_done(clock: SimpleNamespace) -> None:
    stop, batches, sizes = control.StopInValidation(Group(1), shutdown()), 0, []
    for _ in range(5):
        assert not stop.agreed(batches)
        sizes.append(stop.left(batches))
        batches += sizes[-1]
        clock.now += 1e-4
    assert sizes == [1, 1, 2, 4, 8]


def test_all_stop_where_one_was_asked_to(clock: SimpleNamespace) -> None:
    for theirs, mine, stops in ((1.0, False, True), (0.0, True, True), (0.0, False, False)):
        found = begun(Group(theirs=(theirs, 0.75, 0.0, 0.0, 0.0, 0.0)), shutdown(mine)).agree(1, 0.5)
        assert (found.stop, found.loss) == (stops, 1.25)
        assert control.StopInValidation(Group(theirs=(theirs, 0.0)), shutdown(mine)).agreed(1) is stops


def test_the_task_that_waits_longest_for_its_input_counts_if_all_know_how_long(clock: SimpleNamespace) -> None:
    for theirs, mine, known in ((0.25, 0.5, 0.5), (0.75, 0.5, 0.75), (-1.0, 0.5, None), (0.5, None, None)):
        run = begun(Group(theirs=(0.0, 0.0, 0.0, 0.0, theirs, 0.0)), shutdown())
        assert run.agree(1, 0.0, waited=mine).waited == known


def test_all_measure_steps_if_the_devices_of_one_may_work_while_its_host_reads() -> None:
    for theirs, mine, overlaps in ((0.0, False, False), (1.0, False, True), (0.0, True, True)):
        run = begun(Group(theirs=(0.0, 0.0, 0.0, 0.0, 0.0, theirs)), shutdown())
        assert run.agree(1, 0.0, overlaps=mine).overlaps is overlaps


def test_only_the_chiefs_clock_asks_for_a_save_after_the_interval(clock: SimpleNamespace) -> None:
    chief, worker = (begun(Group(index=index), shutdown(), 30.0) for index in (0, 1))
    assert not chief.agree(1, 0.0).save
    clock.now += 30.0
    assert chief.agree(2, 0.0).save
    assert not worker.agree(2, 0.0).save
    assert not begun(Group(), shutdown()).agree(2, 0.0).save
    assert chief.since_saved() == 30.0
    chief.saved()
    assert not chief.agree(3, 0.0).save


def test_a_validation_of_a_single_task_stops_at_once(clock: SimpleNamespace) -> None:
    asked = shutdown()
    stop = control.StopInValidation(Group(1), asked)
    assert not stop.agreed(0)
    asked.requested = True
    assert stop.agreed(0)


def test_a_validation_agrees_no_further_ahead_than_it_has_come(clock: SimpleNamespace) -> None:
    """Batches that turn slow must be noticed: a fast begin says nothing about them."""
    group = Group()
    stop = control.StopInValidation(group, shutdown())
    asked_at = []
    for batches in range(20):
        before = group.meetings
        stop.agreed(batches)
        clock.now += 1e-4
        if group.meetings > before:
            asked_at.append(batches)
    assert asked_at == [1, 2, 4, 8, 16]


def test_a_task_that_was_slow_until_steps_began_meets_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that exchanges earlier, alone, would be missing later: all would wait until the job is killed."""
    monkeypatch.setattr(meetings, "SECONDS", 0.05)
    monkeypatch.setattr(meetings, "POLL_SECONDS", 0.005)
    monkeypatch.setattr(meetings, "_made", itertools.repeat(0))  # the tasks of a job are processes, each with its own
    tasks = Tasks(("chief-0", "worker-0"))

    def train(group: Any) -> None:
        if group.index == 0:
            time.sleep(0.2)
        step = 100
        run = control.Control(group, shutdown(), None, step)
        while step < 200:
            size = min(run.left(step), 200 - step)
            if group.index == 1 and step > 150:
                time.sleep(0.1)  # longer than meetings are to be apart
            tasks.table(group.index, ("call", step, size), np.zeros(1))
            step += size
            if run.due(step):
                run.agree(step, 0.0)
        run.end(step)

    tasks.run(train)
