# SPDX-License-Identifier: Apache-2.0
"""Table, plot and file of a scenario's numbers."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.operators import report
from benchmarks.operators.rounds import in_turn
from benchmarks.operators.sides import SIDES
from benchmarks.operators.statistics import Goal

UNITS = {"seconds": "seconds until every pod exists", "never": "never measured", "megabytes": "peak memory, MB"}
GOALS = (
    Goal("seconds", "dtjob", "bare", "at most", 1.5),
    Goal("megabytes", "dtjob", "tfjob", "at most", 1),
    Goal("never", "dtjob", None, "at most", 1),
)


BARE = {"seconds": 2.0}


@pytest.fixture
def result() -> dict[str, Any]:
    return {
        "scenario": "burst",
        "title": "Many jobs",
        "command": "python -m benchmarks.operators.burst --rounds 2",
        "when": "2026-01-01 00:00",
        "tookSeconds": 90,
        "machine": {
            "cores": 2,
            "cpu": "a processor",
            "memoryGiB": 8,
            "kernel": "6.1",
            "loadBefore": 0.1,
            "loadAtTheEnd": 0.5,
        },
        "versions": {"commit": "0123456789abcdef", "dtjob": "1.0", "etcd": "v3.6.16"},
        "goals": {"seconds of dtjob at most 1.5 of bare": True, "megabytes of dtjob at most 1 of tfjob": False},
        "rounds": [
            {"dtjob": {"seconds": 3.0, "megabytes": 120.0}, "tfjob": {"seconds": 9.0, "megabytes": 60.0}, "bare": BARE},
            {"dtjob": {"seconds": 2.5, "megabytes": 120.0}, "tfjob": {"seconds": 5.0, "megabytes": 60.0}, "bare": BARE},
        ],
    }


def test_the_table_has_medians_their_spread_and_ratios(result: dict[str, Any]):
    text = report.table(result, UNITS, GOALS)
    assert "| | dtjob | tfjob | bare | dtjob / tfjob | dtjob / bare |" in text.replace("|  |", "| |")
    assert "2.75 (2.5 – 3) | 7 (5 – 9) | 2 | 0.417 (0.333 – 0.5) | 1.38 (1.25 – 1.5) |" in text
    assert "| peak memory, MB | 120 | 60 |  | 2 |  |" in text
    assert "never" not in text
    for told in (
        "python -m benchmarks.operators.burst --rounds 2",
        "2 rounds",
        "2 cores (a processor, Linux 6.1)",
        "in 1.5 minutes",
        "load 0.1 before",
        "etcd v3.6.16",
    ):
        assert told in text


def test_each_goal_is_reported_with_its_measured_value(result: dict[str, Any]):
    text = report.table(result, UNITS, GOALS)
    assert "- seconds of dtjob at most 1.5 of bare: 1.38 (1.25 – 1.5), holds" in text
    assert "- megabytes of dtjob at most 1 of tfjob: 2, **does not hold**" in text


def test_numbers_table_and_plot_are_written(result: dict[str, Any], tmp_path: Path):
    report.write(result, UNITS, GOALS, tmp_path / "results")
    written = {path.name for path in (tmp_path / "results").iterdir()}
    assert written == {"burst.json", "burst.md", "burst.png", "README.md"}
    assert json.loads((tmp_path / "results" / "burst.json").read_text()) == result
    assert (tmp_path / "results" / "burst.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_beside_other_work_is_called_a_trial(result: dict[str, Any]):
    assert "trial" not in report.table(result, UNITS, GOALS)
    result["machine"]["loadBefore"] = 8.2
    assert "**A trial beside other work" in report.table(result, UNITS, GOALS)


def test_goals_that_were_not_measured_have_no_verdict(result: dict[str, Any]):
    assert report.verdicts(result["rounds"], GOALS) == result["goals"]


def test_the_index_says_what_was_run_when(result: dict[str, Any], tmp_path: Path):
    report.write(result, UNITS, GOALS, tmp_path)
    report.write({**result, "scenario": "away", "rounds": result["rounds"][:1]}, UNITS, GOALS, tmp_path)
    text = (tmp_path / "README.md").read_text()
    first, second = (line for line in text.splitlines() if line.startswith("| ["))
    command = "`python -m benchmarks.operators.burst --rounds 2`"
    counts = "2 | 2 | 0.1 | 0123456789abcdef | 1 of 2"
    row = f"[burst](burst.md), [plot](burst.png) | 2026-01-01 00:00 | {command} | {counts} |"
    assert row in second
    assert first.startswith("| [away](away.md)")
    assert text.endswith(f"## Plots\n\n![{result['title']}](away.png)\n\n![{result['title']}](burst.png)\n")


def test_without_matplotlib_there_is_no_plot(
    result: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    report.write(result, UNITS, GOALS, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"burst.json", "burst.md", "README.md"}
    assert "matplotlib is not installed" in capsys.readouterr().out


def test_each_round_begins_with_another_side():
    sides = [SIDES[name]() for name in ("dtjob", "tfjob", "bare")]
    orders = [[side.name for side in in_turn(sides, number)] for number in range(4)]
    assert orders == [["dtjob", "tfjob", "bare"], ["tfjob", "bare", "dtjob"], ["bare", "dtjob", "tfjob"], orders[0]]
