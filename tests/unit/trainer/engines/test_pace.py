# SPDX-License-Identifier: Apache-2.0
"""How many steps to ask of a call that cannot look at the clock itself."""

from dtjob_trainer.engines.synchronous import Pace


def asked(rates: list[float], seconds: float = 0.1) -> list[int]:
    """The steps of each call, which runs so many of them a second."""
    pace, calls = Pace(seconds), []
    for rate in rates:
        calls.append(pace.most)
        pace.took(pace.most, pace.most / rate)
    return calls


def test_the_number_of_steps_of_a_call_doubles_up_to_the_time_limit() -> None:
    assert asked([200] * 8) == [1, 2, 4, 8, 16, 20, 20, 20]


def test_a_call_that_was_slow_makes_the_next_one_short() -> None:
    assert asked([200] * 6 + [10, 10, 200, 200]) == [1, 2, 4, 8, 16, 20, 20, 1, 1, 2]


def test_a_step_that_takes_longer_than_that_is_a_call_of_its_own() -> None:
    assert asked([1, 1, 1]) == [1, 1, 1]


def test_fewer_steps_than_asked_for_are_taken_at_their_rate() -> None:
    pace = Pace(0.1)
    for _ in range(5):
        pace.took(pace.most, 0.001)
    assert pace.most == 32
    pace.took(2, 0.02)
    assert pace.most == 10


def test_a_call_that_takes_no_time_doubles_the_steps() -> None:
    pace = Pace(0.1)
    pace.took(1, 0.0)
    assert pace.most == 2
