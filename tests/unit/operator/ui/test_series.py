# SPDX-License-Identifier: Apache-2.0
import pytest

from dtjob.ui import series as drawn
from dtjob.ui.series import Series


def curves(series: Series) -> dict[str, dict[int, float]]:
    return {one["name"]: dict(zip(one["steps"], one["values"], strict=True)) for one in series.curves()}


def test_a_step_that_is_done_again_replaces_the_earlier_value() -> None:
    series = Series()
    for step, loss in ((10, "0.5"), (20, 0.4), (10, 0.6)):
        series.add(step, {"loss": loss})
    assert curves(series) == {"loss": {10: 0.6, 20: 0.4}}


@pytest.mark.parametrize("value", [None, "x", "nan", float("inf"), [], {}, 10**400])
def test_values_that_cannot_be_drawn_are_left_out(value: object) -> None:
    series = Series()
    series.add(1, {"loss": value, "accuracy": 1})
    assert curves(series) == {"accuracy": {1: 1.0}}


@pytest.mark.parametrize("step", [None, "1", True, -1, 1.5, 2**60])
def test_steps_that_are_no_counts_are_left_out(step: object) -> None:
    series = Series()
    series.add(step, {"loss": 1})
    assert curves(series) == {}


def test_a_long_curve_keeps_its_ends_and_every_second_point() -> None:
    series = Series()
    for step in range(drawn.MOST_POINTS + 1):
        series.add(step, {"loss": step})
    steps = [*curves(series)["loss"]]
    assert steps[:3] == [0, 2, 4]
    assert steps[-1] == drawn.MOST_POINTS
    assert len(steps) == drawn.MOST_POINTS // 2 + 1


def test_a_program_that_invents_names_has_a_limit() -> None:
    series = Series()
    series.add(1, {f"metric-{number}": 1 for number in range(10 * drawn.MOST_CURVES)})
    assert len(curves(series)) == drawn.MOST_CURVES


def test_steps_from_a_restart_on_are_forgotten() -> None:
    series = Series()
    for step in (1, 2, 3):
        series.add(step, {"loss": step})
    series.forget_from(2)
    assert curves(series) == {"loss": {1: 1.0}}
