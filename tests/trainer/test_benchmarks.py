"""The benchmark of recovery without Kubernetes at a small size: real training, a real kill, on both sides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.operators import local_recovery, rounds


@pytest.mark.slow
@pytest.mark.parametrize("strategy", local_recovery.NAMES)
def test_a_kill_is_measured_on_both_sides(strategy: str, tmp_path: Path) -> None:
    arguments = ["--rounds=1", "--seconds=10", "--interval=10", "--every=20", "--out", str(tmp_path)]
    rounds.run(local_recovery.scenario(strategy), None, arguments)
    (found,) = json.loads((tmp_path / f"{local_recovery.NAMES[strategy]}.json").read_text())["rounds"]
    assert found.keys() == {"dtjob", "tfjob"}
    for numbers in found.values():
        assert numbers["failures"] == 1
        assert numbers["notRecovered"] == 0
        assert 0 < numbers["workerSeconds"] < 90
        assert 0 < numbers["goodputPercent"] < 100
