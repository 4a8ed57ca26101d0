# SPDX-License-Identifier: Apache-2.0
"""Which side is measured when, and how long that would take."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.operators import away, big_job, burst, recovery, small_beside_big, standing_load
from benchmarks.operators.rounds import Scenario, forecast, parser, run, takes_part
from benchmarks.operators.sides import BareLoop
from benchmarks.operators.statistics import Goal

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


class Bed:
    """Runs nothing."""

    def __enter__(self) -> "Bed":
        return self

    def __exit__(self, *_: object) -> None: ...

    def clear(self) -> None: ...


class Idle(BareLoop):
    def start(self, bed: object) -> None: ...


class Imagined(Scenario):
    def bed(self, names: Sequence[str]) -> Bed:
        return Bed()

    def side(self, name: str, options: argparse.Namespace) -> Idle:
        side = Idle()
        side.name = name
        return side


def test_numbers_measured_before_an_error_are_written(tmp_path: Path) -> None:
    def measure(bed: Bed, side: Idle, options: argparse.Namespace) -> dict[str, float]:
        if side.name == "tfjob-tuned":
            raise TimeoutError("it did not train")
        return {"seconds": 3.0}

    sides = ("dtjob", "tfjob", "tfjob-tuned", "bare")
    units, goals = {"seconds": "seconds"}, (Goal("seconds", "dtjob", "tfjob", "at most", 1),)
    imagined = Imagined(
        name="burst", title="A", measure=measure, estimate=lambda *_: 1.0, sides=sides, units=units, goals=goals
    )
    with pytest.raises(TimeoutError, match="it did not train"):
        run(imagined, None, ["--out", str(tmp_path), "--rounds=2"])
    found = json.loads((tmp_path / "burst.json").read_text())
    assert found["rounds"] == [{"dtjob": {"seconds": 3.0}, "tfjob": {"seconds": 3.0}}]
    assert found["goals"] == {"seconds of dtjob at most 1 of tfjob": True}
    assert {"commit", "dtjob", "etcd"} <= found["versions"].keys()
    assert {"cores", "cpu", "loadBefore", "loadAtTheEnd"} <= found["machine"].keys()


def test_a_round_of_which_nothing_was_measured_is_none(tmp_path: Path) -> None:
    measured: list[str] = []

    def measure(bed: Bed, side: Idle, options: argparse.Namespace) -> dict[str, float]:
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(side.name)
        return {"seconds": 3.0}

    imagined = Imagined(
        name="burst",
        title="A",
        measure=measure,
        estimate=lambda *_: 1.0,
        sides=("dtjob", "bare"),
        units={"seconds": "s"},
        goals=(),
    )
    with pytest.raises(KeyboardInterrupt):
        run(imagined, None, ["--out", str(tmp_path), "--rounds=2"])
    assert json.loads((tmp_path / "burst.json").read_text())["rounds"] == [
        {side: {"seconds": 3.0} for side in measured}
    ]


@pytest.mark.parametrize("scenario", ALL, ids=[one.name for one in ALL])
def test_each_scenario_says_how_long_it_takes_and_begins_nothing(scenario, capsys: pytest.CaptureFixture[str]) -> None:
    run(scenario, None, ["--estimate"])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"{scenario.name}: about ")
    assert all(f"{side} {scenario.rounds} × " in captured.err for side in scenario.sides)


@pytest.mark.parametrize("scenario", OURS, ids=[one.name for one in OURS])
def test_the_estimate_grows_with_the_number_of_jobs(scenario) -> None:
    few, many = (parser(scenario, None).parse_args([f"--jobs={jobs}"]) for jobs in (10, 100))
    for side in scenario.sides:
        assert 0 < scenario.estimate(side, few) < scenario.estimate(side, many)
