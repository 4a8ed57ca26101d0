"""Which side is measured when, and how long that would take."""

from __future__ import annotations

import argparse

import pytest

from benchmarks.operators import away, big_job, burst, recovery, small_beside_big, standing_load
from benchmarks.operators.rounds import forecast, parser, run, takes_part

OURS = [one.SCENARIO for one in (burst, big_job, standing_load, small_beside_big, away)]
ALL = [*OURS, *(recovery.scenario(strategy) for strategy in recovery.NAMES)]


def parsed(*arguments: str) -> argparse.Namespace:
    return parser(burst.SCENARIO, None).parse_args(arguments)


def test_slow_sides_take_part_in_the_first_rounds_only() -> None:
    options = parsed("--rounds=3", "--slow-rounds=1")
    assert [takes_part(burst.SCENARIO, "tfjob", number, options) for number in range(3)] == [True, False, False]
    assert all(takes_part(burst.SCENARIO, "tfjob-tuned", number, options) for number in range(3))
    assert all(takes_part(burst.SCENARIO, "tfjob", number, parsed()) for number in range(5))


def test_the_forecast_counts_each_side_as_often_as_it_takes_part() -> None:
    told = forecast(burst.SCENARIO, ("dtjob", "tfjob"), parsed("--rounds=3", "--slow-rounds=1", "--jobs=10"))
    assert "dtjob 3 × " in told
    assert "tfjob 1 × " in told


@pytest.mark.parametrize("scenario", ALL, ids=[one.name for one in ALL])
def test_each_scenario_says_how_long_it_takes_and_begins_nothing(scenario, capsys: pytest.CaptureFixture[str]) -> None:
    run(scenario, None, ["--estimate"])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"{scenario.name}: about ")
    assert all(f"{side} {scenario.rounds} × " in captured.err for side in scenario.sides)


@pytest.mark.parametrize("scenario", OURS, ids=[one.name for one in OURS])
def test_more_of_it_takes_longer(scenario) -> None:
    few, many = (parser(scenario, None).parse_args([f"--jobs={jobs}"]) for jobs in (10, 100))
    for side in scenario.sides:
        assert 0 < scenario.estimate(side, few) < scenario.estimate(side, many)
