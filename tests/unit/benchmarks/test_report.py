# SPDX-License-Identifier: Apache-2.0
"""Table, plot and file of a scenario's numbers."""

from typing import Any

import pytest

from benchmarks.operators import report
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
