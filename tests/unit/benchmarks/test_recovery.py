# SPDX-License-Identifier: Apache-2.0
"""What a log of steps and the failures say together."""

import pytest

from benchmarks.operators.goodput import Note
from benchmarks.operators.recovery import UNITS, Failure, numbers

LOG = [
    *(Note("a", step, float(step)) for step in range(1, 51)),
    *(Note("b", step, 20.0 + step) for step in range(41, 81)),  # back at 60, with new steps from 71 on
]


def test_a_restart_is_seen_in_each_number() -> None:
    found = numbers(LOG, [Failure("worker", 50.2)], 0.0, 100.0)
    assert found == {
        "failures": 1,
        "notRecovered": 0,
        "workerSeconds": pytest.approx(71.0 - 50.2),
        "laterSeconds": pytest.approx(71.0 - 50.2),
        "goodputPercent": pytest.approx(80.0),
        "stepsPerSecond": pytest.approx(50 / 50.2),
        "stepsPercent": pytest.approx(100 * 80 / (50 / 50.2 * 100)),
        "stepsRedone": 10,
    }
    assert found.keys() <= UNITS.keys()


def test_a_failure_without_a_recovery_is_counted_and_has_no_time() -> None:
    found = numbers(LOG[:50], [Failure("chief", 50.2)], 0.0, 100.0)
    assert found["notRecovered"] == 1
    assert "chiefSeconds" not in found
    assert found["goodputPercent"] == pytest.approx(50.0)


def test_the_recovery_time_of_a_role_is_the_median_of_its_failures() -> None:
    log = [Note("a", step, float(step)) for step in range(1, 100)]
    found = numbers(log, [Failure("worker", 10.1), Failure("worker", 20.2), Failure("worker", 30.6)], 0.0, 99.0)
    assert found["workerSeconds"] == pytest.approx(0.8)


def test_the_earlier_and_the_later_half_of_the_recoveries_have_their_own_numbers() -> None:
    log = [Note("a", step, float(step)) for step in range(1, 100)]
    failures = [Failure("worker", 10.9), Failure("chief", 20.7), Failure("worker", 30.6), Failure("chief", 40.2)]
    found = numbers(log, failures, 0.0, 99.0)
    assert (found["earlierSeconds"], found["laterSeconds"]) == (pytest.approx(0.2), pytest.approx(0.6))
