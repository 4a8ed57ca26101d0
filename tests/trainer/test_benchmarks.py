# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of training at a small size: real processes on both sides."""

import json
from pathlib import Path

import pytest

from benchmarks import checkpoint_stall, data_memory, parameter_server, restore_memory
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


@pytest.mark.slow
def test_each_part_of_parameter_server_is_measured_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--rounds=1", "--workers", "2", "--seconds", "0.05", "--servers", "2", "--megabytes", "1", "--every=20"]
    parameter_server.main(small)
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| 2")]
    steps, tables, dtjob, alone = ([each for each in row if each not in ("dtjob", "alone")] for row in rows)
    assert all(float(number) > 0 for row in (steps, tables) for number in row)
    assert all(float(row[3]) > 0 for row in (dtjob, alone))


@pytest.mark.slow
def test_saves_are_measured_without_and_with_arrays_of_callbacks(capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint_stall.main(["--saves=3", "--every=10", "--megabytes=1"])
    dtjob, keras = (list(side.values()) for side in json.loads(capsys.readouterr().out).values())
    assert all(run["saves"] == 3 and run["checkpointMegabytes"] >= 1 for run in (*dtjob, *keras))
    without, best = dtjob
    assert best["checkpointMegabytes"] == pytest.approx(2 * without["checkpointMegabytes"], rel=0.1)


@pytest.mark.slow
def test_the_memory_of_arrays_is_measured_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    data_memory.main(["--megabytes", "64", "--rounds=1"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["array", "64"], ["mapped", "64"]]
    assert all(float(number) > -64 for row in rows for number in row[2:])


@pytest.mark.slow
def test_a_restore_is_measured_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    restore_memory.main(["--megabytes", "8", "--rounds=1"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["dtjob", "8"], ["keras", "8"]]
    assert all(float(number) > 0 for row in rows for number in row[2:])
