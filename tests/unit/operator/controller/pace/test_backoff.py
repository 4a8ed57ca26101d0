# SPDX-License-Identifier: Apache-2.0
from dtjob.controller.pace.backoff import Backoff


def test_each_wait_is_twice_the_one_before_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.after(failures) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_failure_that_lasts_for_days_is_no_overflow() -> None:
    assert Backoff(0.1, 60.0).after(1_000_000) == 60.0
