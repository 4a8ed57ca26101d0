"""The operator's benchmarks at a small size: dtjob and the bare loop, on an API server with kwok for pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.operators import burst, rounds
from tools import binaries


@pytest.fixture(scope="module")
def programs(pytestconfig: pytest.Config) -> Iterator[dict[str, Path]]:
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            yield binaries.find(binaries.BENCHMARKS)
    except binaries.BinariesError as error:
        pytest.skip(f"no programs for benchmarks: {str(error).splitlines()[0]}")


def test_a_burst_is_measured_on_both_sides(programs: dict[str, Path], tmp_path: Path) -> None:
    rounds.run(burst.SCENARIO, None, ["--jobs=3", "--rounds=1", "--sides", "dtjob", "bare", "--out", str(tmp_path)])
    result = json.loads((tmp_path / "burst.json").read_text())
    ((ours, bare),) = [(one["dtjob"], one["bare"]) for one in result["rounds"]]
    assert ours.keys() == burst.SCENARIO.units.keys()
    assert bare["podsPerSecond"] > 0
    # One for each of 4 pods, Service, ConfigMap and NetworkPolicy; the others are writes of the status.
    assert 4 + 3 < ours["requestsPerJobToRunning"] <= ours["requestsPerJob"] < 4 + 3 + 10
    assert ours["storedBytesPerJob"] > 4 * 1000
