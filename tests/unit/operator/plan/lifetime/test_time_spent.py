# SPDX-License-Identifier: Apache-2.0
"""Goodput: every second since all tasks first ran stands under one name, and under the right one."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob.api.status.goodput import Part
from dtjob.api.status.internal import Doing, Spent
from dtjob.api.status.status import Status
from dtjob.plan.lifetime.time_spent import Goodput, Seen, by_part, count
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

BEGAN = Goodput(NOW, Doing.STARTING)


def spent(kept: float = 0.0, steps: int = 0, *, begins: int = 0, attempt: int = 0, **more: Any) -> Spent:
    return Spent(attempt=attempt, from_step=begins, kept_steps=steps, kept=kept, **more)


def seen(doing: Doing, reported: Spent | None = None, **more: Any) -> Seen:
    return Seen(**{"doing": doing, "readable": True, "reported": reported, "pods_wait_from": None} | more)


UNREADABLE = seen(Doing.STARTING, readable=False)


def after(*looks: tuple[float, Seen], begins: Goodput = BEGAN) -> Goodput:
    """Counted at each of these looks, through the status each time."""
    for seconds, what in looks:
        stored = count(begins, what, at(seconds)).written_to(Status()).to_json()
        counted = Goodput.of(Status.read(stored), at(-3600))
        assert counted is not None
        begins = counted
    return begins


def parts(goodput: Goodput) -> dict[str, float]:
    said = goodput.written_to(Status()).goodput
    return {part.value: seconds for part, seconds in by_part(said.seconds).items()}


def test_start_training_saves_and_end_have_their_own_seconds() -> None:
    found = after(
        (8, seen(Doing.TRAINING, spent(0))),
        (30, seen(Doing.TRAINING, spent(20, 100, saving=1.5))),
        (60, seen(Doing.ENDING, spent(45, 200, saving=3))),
    )
    assert parts(found) == {"kept": 45, "saving": 3, "starting": 8, "unknown": 0.5, "ending": 3.5}
    assert (found.percent, found.kept_steps) == (75, 200)


def test_the_time_since_the_last_report_is_unknown_until_it_is_reported() -> None:
    first = after((5, seen(Doing.TRAINING, spent(4, 10))))
    assert parts(first) == {"kept": 4, "starting": 1}
    later = after((10, seen(Doing.TRAINING, spent(8.5, 20))), begins=first)
    assert parts(later) == {"kept": 8.5, "starting": 1, "unknown": 0.5}
    assert parts(after((15, seen(Doing.TRAINING, spent(14, 30))), begins=later)) == {"kept": 14, "starting": 1}


@given(
    began=st.integers(0, 500),
    looks=st.lists(st.tuples(st.integers(1, 300), st.integers(0, 300)), min_size=1, max_size=6),
    first=st.sampled_from([Doing.STARTING, Doing.RESTARTING]),
)
def test_all_that_a_supervisor_trained_is_counted_at_its_end_however_old_its_reports_were(began, looks, first):
    """In hundredths of a second: when training began, and for each look the time since the last and the report's
    age."""
    now, last, reported = began, began, []
    for since, age in looks:
        now += since
        last = max(last, now - age)
        reported.append((now / 100, seen(Doing.TRAINING, spent((last - began) / 100, last))))
    end = (now / 100 + 0.01, seen(Doing.ENDING, spent((now - began) / 100, now, saving=0.01)))
    found = after(*reported, end, begins=Goodput(NOW, first))
    assert found.seconds[Part.SAVING] == 0.01
    assert found.seconds[Part.KEPT] == pytest.approx((now - began) / 100, abs=1e-6)
    assert sum(found.seconds.values()) == pytest.approx(now / 100 + 0.01)


def test_a_worker_is_lost_and_training_goes_on_in_the_chiefs_container() -> None:
    found = after(
        (2, seen(Doing.TRAINING, spent(2, 10))),
        (21, seen(Doing.WAITING_FOR_PODS, spent(20, 100))),  # its last word, and the failure
        (27, seen(Doing.RESTARTING, spent(20, 100))),
        (40, seen(Doing.TRAINING, spent(18 + 3, 100, redone=4, redone_steps=20, incarnation=1))),
    )
    assert parts(found) == {"kept": 21, "redone": 4, "waitingForPods": 6, "restarting": 1 + 8}
    assert (found.kept_steps, found.redone_steps) == (100, 20)


@pytest.mark.parametrize("between", [0, 1, 2])
def test_training_before_a_lost_worker_counts_however_late_the_report_is_read(between: int) -> None:
    """Its last word is a second old when the loss is written, and so are those that are read between that and the
    restart in its container."""
    same = [(21.5 + 0.1 * number, seen(Doing.WAITING_FOR_PODS, spent(10, 50))) for number in range(between)]
    found = after(
        (10, seen(Doing.TRAINING, spent(10, 50))),
        (21, seen(Doing.WAITING_FOR_PODS, spent(10, 50))),
        *same,
        (22, seen(Doing.RESTARTING, spent(18, 100, saving=2, incarnation=1))),
        (25, seen(Doing.RESTARTING, spent(18, 100, saving=2, incarnation=1))),
    )
    lost = {name: seconds for name, seconds in parts(found).items() if name not in ("kept", "saving")}
    assert (found.seconds[Part.KEPT], found.seconds[Part.SAVING], sum(lost.values())) == (18, 2, pytest.approx(5))
    assert lost.keys() <= {"restarting", "waitingForPods"}


def test_a_restart_in_place_that_no_pod_shows_counts_as_restarting() -> None:
    found = after(
        (10, seen(Doing.TRAINING, spent(10, 100))),
        (30, seen(Doing.TRAINING, spent(15, 150, redone=2, redone_steps=10, incarnation=1))),
    )
    assert parts(found) == {"kept": 15, "redone": 2, "restarting": 13}


def test_a_new_pod_of_the_chief_takes_steps_back_by_their_share() -> None:
    before = after((100, seen(Doing.TRAINING, spent(100, 400))), (100, seen(Doing.WAITING_FOR_PODS)))
    back = after(
        (110, seen(Doing.RESTARTING)), (120, seen(Doing.TRAINING, spent(2, 8, begins=300, attempt=1))), begins=before
    )
    assert parts(back) == {"kept": 75 + 2, "redone": 25, "waitingForPods": 10, "restarting": 8}
    assert (back.kept_steps, back.redone_steps) == (308, 100)


def test_older_steps_are_taken_back_at_the_pace_that_they_had() -> None:
    slow = after(
        (100, seen(Doing.TRAINING, spent(100, 100))),
        (100, seen(Doing.WAITING_FOR_PODS)),
        (100, seen(Doing.TRAINING, spent(0, 0, begins=100, attempt=1))),
        (160, seen(Doing.TRAINING, spent(60, 1, begins=100, attempt=1))),
        (160, seen(Doing.WAITING_FOR_PODS)),
    )
    same = after((170, seen(Doing.TRAINING, spent(0, begins=100, attempt=2))), begins=slow)
    assert parts(same) == {"kept": 100, "redone": 60, "waitingForPods": 10}
    older = after((170, seen(Doing.TRAINING, spent(0, begins=90, attempt=2))), begins=slow)
    assert parts(older) == {"kept": 90, "redone": 70, "waitingForPods": 10}
    assert (older.kept_steps, older.redone_steps) == (90, 11)
    anew = after((170, seen(Doing.TRAINING, spent(0, begins=0, attempt=2))), begins=slow)
    assert parts(anew) == {"redone": 160, "waitingForPods": 10}
    assert (anew.kept_steps, anew.redone_steps) == (0, 101)


def test_the_wait_before_a_restart_is_the_restarts_and_the_rest_the_pods() -> None:
    found = after(
        (10, seen(Doing.TRAINING, spent(10, 10))),
        (10, seen(Doing.BACKOFF)),
        (100, seen(Doing.RESTARTING, pods_wait_from=at(70))),
    )
    assert parts(found) == {"kept": 10, "restarting": 60, "waitingForPods": 30}


def test_suspension_is_no_time_at_all() -> None:
    found = after(
        (10, seen(Doing.TRAINING, spent(9, 10))),
        (20, seen(Doing.SUSPENDED, spent(18, 20))),
        (500, seen(Doing.SUSPENDED, spent(19, 21))),
        (10_000, seen(Doing.WAITING_FOR_PODS)),
        (10_005, seen(Doing.STARTING)),
        (10_010, seen(Doing.TRAINING, spent(2, 2, begins=21, attempt=1))),
    )
    assert parts(found) == {"kept": 20, "starting": 1 + 3, "waitingForPods": 5, "unknown": 1}
    assert found.redone_steps == 0


def test_the_time_of_a_silent_chief_is_unknown_until_its_next_report() -> None:
    silent = after((10, seen(Doing.TRAINING, spent(10, 10))), (1000, UNREADABLE), (2000, UNREADABLE))
    assert parts(silent) == {"kept": 10, "unknown": 1990}
    assert silent.percent == 100  # of the time of which it is known
    again = after((2010, seen(Doing.TRAINING, spent(1910, 1900, saving=90))), begins=silent)
    assert parts(again) == {"kept": 1910, "saving": 90, "unknown": 10}
    other = after((2010, seen(Doing.TRAINING, spent(1900, 1900, incarnation=1))), begins=silent)
    assert parts(other) == {"kept": 1900, "unknown": 110}
    never = after((2010, seen(Doing.WAITING_FOR_PODS, readable=False)), begins=silent)
    assert parts(never) == {"kept": 10, "unknown": 2000}
    new_pod = after((2020, seen(Doing.TRAINING, spent(5, 5, begins=10, attempt=1))), begins=never)
    assert parts(new_pod) == {"kept": 15, "unknown": 2000, "waitingForPods": 5}


def test_a_chief_that_never_reports_its_time_gives_no_percentage() -> None:
    old_trainer = after((10, seen(Doing.TRAINING)), (100, seen(Doing.TRAINING)), (200, UNREADABLE))
    assert parts(old_trainer) == {"starting": 10, "unknown": 190}
    assert old_trainer.percent is None


def test_an_operator_that_was_away_while_pods_came_up_gives_the_time_back() -> None:
    waits = after((10, seen(Doing.TRAINING, spent(10, 10))), (10, seen(Doing.WAITING_FOR_PODS)))
    back = after((3610, seen(Doing.RESTARTING, readable=False)), begins=waits)
    assert parts(back) == {"kept": 10, "waitingForPods": 3600}
    reported = after((3615, seen(Doing.TRAINING, spent(3000, 3000, begins=10, attempt=1))), begins=back)
    assert parts(reported) == {"kept": 3010, "waitingForPods": 605}


def test_a_clock_that_is_set_back_or_forward_changes_no_training_time() -> None:
    trains = after((100, seen(Doing.TRAINING, spent(100, 100))))
    back = after(
        (50, seen(Doing.TRAINING, spent(110, 110))), (60, seen(Doing.TRAINING, spent(120, 120))), begins=trains
    )
    assert parts(back) == {"kept": 110}
    ahead = after((4000, seen(Doing.TRAINING, spent(110, 110))), begins=trains)
    assert parts(ahead) == {"kept": 110, "unknown": 3890}


REPORTED = st.builds(
    Spent,
    attempt=st.integers(0, 3),
    incarnation=st.integers(0, 2),
    from_step=st.integers(0, 300),
    kept_steps=st.integers(0, 300),
    kept=st.floats(0, 500),
    redone_steps=st.integers(0, 100),
    redone=st.floats(0, 200),
    saving=st.floats(0, 50),
)
SEEN = st.builds(
    Seen,
    doing=st.sampled_from(Doing),
    readable=st.booleans(),
    reported=st.none() | REPORTED,
    pods_wait_from=st.none() | st.integers(-100, 1000).map(at),
)


@given(st.lists(st.tuples(st.integers(-50, 300), SEEN), max_size=12))
def test_every_second_is_counted_once(looks: Iterable[tuple[int, Seen]]) -> None:
    goodput, moment, counted = BEGAN, 0, 0
    for step, what in looks:
        before, moment = goodput, moment + step
        goodput = after((moment, what), begins=before)
        counted += max(0, step) if before.doing is not Doing.SUSPENDED else 0
        assert sum(goodput.seconds.values()) == pytest.approx(counted, abs=0.2)
        assert goodput.percent is None or 0 <= goodput.percent <= 100
        for part in (Part.REDONE, Part.SAVING):
            assert goodput.seconds.get(part, 0.0) >= before.seconds.get(part, 0.0) - 0.011
        assert goodput.redone_steps >= before.redone_steps


# Through plans


def report(step: int, kept: float, **more: Any) -> dict[str, Any]:
    block = {"from": 0, "keptSteps": step, "kept": kept, "redoneSteps": 0, "redone": 0, "saving": 0}
    reported = {"task": "chief-0", "attempt": 0, "incarnation": 0, "state": "training", "restoredStep": 0, "step": step}
    return {**reported, "spent": block, **more}


class History:
    """One job, whose status is written as plans say."""

    def __init__(self, strategy: str = "Mirrored", **spec: Any) -> None:
        self.job = builders.job(strategy, **spec)
        self.pods = builders.all_pods(self.job)
        self.writes = 0

    def look(self, seconds: float, reported: dict[str, Any] | None = None, **children: Any) -> dict[str, Any]:
        reports = {} if reported is None else {"chief-0": reported}
        observed = Children(tuple(self.pods.values()), reports, **children)
        status = plan(self.job, observed, at(seconds)).status
        if status is not None:
            self.job, self.writes = builders.with_status(self.job, status), self.writes + 1
        return dict(self.job.status)


def seconds(status: dict[str, Any]) -> dict[str, float]:
    return {name: float(text) for name, text in status["goodput"]["seconds"].items()}


def test_a_change_of_goodput_alone_does_not_write_the_status() -> None:
    history = History()
    history.look(0)
    history.look(1, report(0, 0.0))
    writes = history.writes
    for second in range(2, 9):
        history.look(second, report(0, second - 1.5))
    assert history.writes == writes
    validates = report(100, 9.0)
    history.look(20, validates)
    writes = history.writes
    for minute in range(1, 30):  # a validation: time goes by, and the chief tells of no more steps
        history.look(20 + 60 * minute, {**validates, "spent": {**validates["spent"], "kept": 9.0 + 60 * minute}})
    assert history.writes == writes


def test_goodput_is_written_with_the_progress() -> None:
    history = History()
    history.look(0)
    status: dict[str, Any] = {}
    for second in range(1, 61):
        status = history.look(second, report(10 * second, second - 0.5))
    assert history.writes <= 1 + 2 + 60 / 10
    assert status["goodput"]["percentage"] >= 98
    assert status["goodput"]["steps"] == {"kept": status["progress"]["step"]}


def test_steps_that_are_reported_at_the_first_look_count() -> None:
    """The status may not be written again for a long time."""
    assert History().look(0, report(10, 5.0))["goodput"]["steps"] == {"kept": 10}


def test_goodput_begins_when_all_tasks_first_run() -> None:
    history = History()
    history.pods = {}
    assert "goodput" not in history.look(0)
    history.pods = builders.all_pods(history.job)
    assert history.look(100)["goodput"] == {}
    assert seconds(history.look(130, report(1, 20.0))) == {"kept": 20, "starting": 10}


def test_the_last_report_of_the_chief_counts_and_nothing_after_the_end_does() -> None:
    history = History()
    history.look(0)
    history.look(5, report(10, 4.0))
    words = json.dumps(report(100, 40.0, state="finished"))
    history.pods = builders.all_pods(history.job, builders.ended(0, message=words))
    status = history.look(50, report(10, 4.0))
    assert status["phase"] == "Succeeded"
    assert seconds(status) == {"kept": 40, "starting": 1, "ending": 9}
    assert history.look(5000)["goodput"] == status["goodput"]


def test_the_chief_fails_and_its_last_report_counts() -> None:
    history = History(failurePolicy={"backoff": {"initialSeconds": 0, "maxSeconds": 0}})
    history.look(0)
    history.look(1, report(0, 0.0))
    history.pods = builders.all_pods(history.job, builders.ended(1, at(62), message="Traceback"))
    status = history.look(65, report(100, 60.0))  # written at the failure, with what was not written before
    assert seconds(status) == {"kept": 60, "starting": 1, "restarting": 4}
    history.pods = {"chief-0": builders.pod(history.job, "chief-0", builders.running(), attempt=1)}
    history.look(75)
    status = history.look(
        90, {**report(85, 1.0, attempt=1, restoredStep=80), "spent": {"from": 80, "keptSteps": 5, "kept": 1.0}}
    )
    assert status["goodput"]["steps"] == {"kept": 85, "redone": 20}
    assert seconds(status) == {
        "kept": 49, "redone": 12, "starting": 1, "waitingForPods": 10, "restarting": 4 + 14,
    }  # fmt: skip


def test_a_job_without_a_program_has_no_goodput() -> None:
    history = History(program=False)
    assert "goodput" not in history.look(0)
    assert "goodput" not in history.look(100, report(1, 1.0))


@pytest.mark.parametrize("odd", ["much", [1], {"kept": "all"}, {"kept": float("nan")}, {"kept": -5, "from": 1.5}, None])
def test_an_odd_field_spent_of_a_report_is_no_error(odd: Any) -> None:
    history = History()
    history.look(0)
    status = history.look(30, report(10, 5.0, spent=odd))
    assert sum(map(float, status["goodput"]["seconds"].values())) == 30


SPENT = Spent(
    attempt=2, incarnation=1, from_step=40, kept_steps=60, kept=81.25, redone_steps=7, redone=3.5, saving=2.25
)
COUNTED = Goodput(
    NOW,
    Doing.TRAINING,
    {Part.KEPT: 80.0, Part.REDONE: 10.0, Part.WAITING_FOR_PODS: 10.0, Part.UNKNOWN: 5.5},
    kept_steps=90,
    redone_steps=12,
    reported=SPENT,
)


def through_the_status(goodput: Goodput) -> Goodput | None:
    return Goodput.of(Status.read(goodput.written_to(Status()).to_json()), at(-99))


def test_goodput_is_the_same_after_a_write_and_a_read() -> None:
    assert through_the_status(COUNTED) == COUNTED
    part_of_a_second = Goodput(at(0.12), Doing.STARTING, {Part.STARTING: 0.12})
    assert through_the_status(part_of_a_second) == part_of_a_second


def test_the_public_goodput_has_the_percentage_the_seconds_and_the_steps() -> None:
    shown = COUNTED.written_to(Status()).to_json()["goodput"]
    assert shown == {
        "percentage": 80,
        "seconds": {"kept": "80", "redone": "10", "waitingForPods": "10", "unknown": "5.5"},
        "steps": {"kept": 90, "redone": 12},
    }


def test_percent_is_never_rounded_up() -> None:
    assert Goodput(NOW, Doing.TRAINING, {Part.KEPT: 999.0, Part.SAVING: 1.0}, reported=SPENT).percent == 99
    assert Goodput(NOW, Doing.TRAINING, {Part.KEPT: 1.0}, reported=SPENT).percent == 100
    # 0.07 and 0.93 add up to a little more than 1 for a computer
    assert Goodput(NOW, Doing.TRAINING, {Part.KEPT: 0.93, Part.SAVING: 0.07}, reported=SPENT).percent == 93
