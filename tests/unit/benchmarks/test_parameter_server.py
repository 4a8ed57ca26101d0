# SPDX-License-Identifier: Apache-2.0
"""What the benchmark of ParameterServer computes from the times that its programs write."""

import pytest

from benchmarks.parameter_server import ratio, standstills, times_of_saves

EVERY = 3
ENDS = [1.0, 2.0, 3.0, 8.0, 9.0, 10.0, 13.0, 14.0]
"""A second a step; a save of 4 s after step 3, and one of 2 s after step 6."""


def test_a_ratio_is_the_median_of_turns_after_each_other() -> None:
    assert ratio([1.0, 6.0, 9.0], [1.0, 2.0, 4.5]) == 2.0


def test_a_standstill_is_what_a_save_adds_between_two_steps() -> None:
    assert standstills(ENDS, EVERY) == pytest.approx([4.0, 2.0])


def test_a_save_lasts_from_the_last_step_before_it_until_it_is_on_disk() -> None:
    assert times_of_saves(ENDS, [7.5, 15.0], EVERY) == pytest.approx([4.5, 5.0])
