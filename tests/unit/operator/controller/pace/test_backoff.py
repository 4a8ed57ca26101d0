# SPDX-License-Identifier: Apache-2.0
"""When what has failed, was refused or was repaired may be tried again."""

from datetime import timedelta

from dtjob.controller.pace.backoff import (
    IN_THE_WAY,
    REPAIR_WAIT,
    REPAIRS_AT_ONCE,
    REPAIRS_FORGOTTEN_AFTER,
    Backoff,
    Holds,
    RepairLimit,
)
from tests.unit.operator.builders import NOW


def test_each_wait_is_twice_the_one_before_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.after(failures) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_failure_that_lasts_for_days_is_no_overflow() -> None:
    assert Backoff(0.1, 60.0).after(1_000_000) == 60.0


def test_a_refused_object_is_held_back_and_then_tried_again():
    holds = Holds()
    assert holds.of("Pod/a").until < 100
    holds.hold("Pod/a", 100)
    assert holds.of("Pod/a").until > 100 + IN_THE_WAY.longest - 0.1
    assert holds.of("Pod/a").until <= 100 + IN_THE_WAY.longest
    assert holds.of("Pod/b").until <= 100


def test_an_object_in_the_way_is_looked_up_after_ever_longer_waits():
    holds, now, waits = Holds(), 100.0, []
    for _ in range(6):
        holds.hold("Pod/a", now, blocker="uid")
        wait = holds.next_try(now)
        assert wait is not None
        waits.append(wait)
        now += wait
    assert waits == [1, 2, 4, 8, 15, 15]
    assert (holds.of("Pod/a").tries, holds.of("Pod/a").blocker) == (6, "uid")


def test_the_next_try_is_the_earliest():
    holds = Holds()
    assert holds.next_try(0) is None
    holds.hold("Pod/a", 100)
    holds.hold("Pod/b", 105)
    assert holds.next_try(110) == 5
    assert holds.next_try(116) == IN_THE_WAY.first
    holds.lift("Pod/a")
    assert holds.next_try(110) == 10


def test_holds_of_objects_that_are_not_wanted_any_more_are_dropped():
    holds = Holds()
    holds.hold("Pod/a", 100)
    holds.hold("Pod/b", 100)
    holds.keep({"Pod/b"})
    assert holds.of("Pod/a").until <= 100
    assert holds.of("Pod/b").until > 100
    holds.keep(set())
    assert holds.next_try(100) is None


def test_a_refused_repair_is_distinguished_from_a_refused_creation():
    holds = Holds()
    holds.hold("Service/digits", 0.0, stands=True)
    holds.hold("ConfigMap/digits", 0.0)
    assert [holds.of(f"{kind}/digits").stands for kind in ("Service", "ConfigMap", "NetworkPolicy")] == [
        True,
        False,
        False,
    ]
    assert holds.of("Service/digits").until > 1.0


def test_the_first_repairs_are_made_at_once_and_later_ones_after_ever_longer_waits():
    limit, now, waits = RepairLimit(), NOW, []
    for _ in range(REPAIRS_AT_ONCE + 12):
        wait = limit.wait("a", now)
        waits.append(wait)
        now += wait
        assert not limit.wait("a", now)
        limit.note("a", now)
    assert waits[:REPAIRS_AT_ONCE] == [timedelta()] * REPAIRS_AT_ONCE
    assert waits[REPAIRS_AT_ONCE : REPAIRS_AT_ONCE + 3] == [timedelta(seconds=seconds) for seconds in (2, 4, 8)]
    assert waits[-1] == timedelta(seconds=REPAIR_WAIT.longest)
    assert not limit.wait("b", now)
    assert limit.wait("a", now)
    assert not limit.wait("a", now + REPAIRS_FORGOTTEN_AFTER + timedelta(seconds=1))
