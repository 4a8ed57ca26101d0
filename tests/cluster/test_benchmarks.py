# SPDX-License-Identifier: Apache-2.0
"""The operator's benchmarks at a small size: dtjob and the bare loop, on an API server with kwok for pods."""

import json
from pathlib import Path

import pytest

from benchmarks import rules_cost
from benchmarks.operators import away, big_job, burst, rounds, small_beside_big, soak_hour, standing_load
from benchmarks.operators.jobs import Shape
from benchmarks.operators.rounds import Scenario
from tools import binaries
from tools.cluster.control_plane import ControlPlane
from tools.programs import BENCHMARKS

pytestmark = pytest.mark.slow  # an API server and kwok for each side; tests/unit/benchmarks/ has what is counted


@pytest.fixture(scope="module")
def programs(pytestconfig: pytest.Config) -> None:
    """Skips where they can be neither found nor built."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a first build takes minutes, and says so
            binaries.find(BENCHMARKS)
    except binaries.BinariesError as error:
        pytest.skip(f"no programs for benchmarks: {str(error).splitlines()[0]}")


@pytest.mark.usefixtures("programs")
def test_a_burst_is_measured_on_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rounds.run(burst.SCENARIO, None, ["--jobs=3", "--rounds=1", "--sides", "dtjob", "bare", "--out", str(tmp_path)])
    (found,) = json.loads((tmp_path / "burst.json").read_text())["rounds"]
    ours = found["dtjob"]
    assert ours.keys() == burst.SCENARIO.units.keys()
    assert found["bare"].keys() == {"podsPerSecond", "secondsToPods"}
    # One for each of 4 pods, Service, ConfigMap and NetworkPolicy; the others are writes of the status.
    assert 4 + 3 < ours["requestsPerJobToRunning"] <= ours["requestsPerJob"] < 4 + 3 + 10
    assert ours["storedBytesPerJob"] > 4 * 1000
    assert "| pods a second until every pod exists |" in capsys.readouterr().out


SMALL = {
    big_job: ["--workers=5"],
    standing_load: ["--jobs=3", "--workers=1", "--rest=1", "--failures=3"],
    small_beside_big: ["--jobs=2", "--workers=50"],
    away: ["--jobs=6", "--away=1"],
}


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("scenario", [module.SCENARIO for module in SMALL], ids=[one.SCENARIO.name for one in SMALL])
def test_every_other_scenario_is_measured(scenario: Scenario, tmp_path: Path) -> None:
    (arguments,) = [some for module, some in SMALL.items() if module.SCENARIO is scenario]
    rounds.run(scenario, None, [*arguments, "--rounds=1", "--sides", "dtjob", "--out", str(tmp_path)])
    (found,) = json.loads((tmp_path / f"{scenario.name}.json").read_text())["rounds"]
    assert scenario.units.keys() <= found["dtjob"].keys()


@pytest.mark.usefixtures("programs")
def test_a_minute_of_the_soak_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak_hour.play(40, Shape(workers=1), minutes=1) == []
    assert "40 pods run after" in capsys.readouterr().out


def test_the_cost_of_rules_is_measured_for_each_definition() -> None:
    with ControlPlane(binaries.find()) as cluster:
        sides = rules_cost.Sides(cluster, rules_cost.ROOT / "crds" / "distributedtrainingjobs.yaml")
        found = rules_cost.measure(sides, jobs=50, rounds=1)  # /proc counts in hundredths of a second
    assert found.keys() == rules_cost.JOBS.keys()
    for calls in found.values():
        assert calls.keys() == {"create", "status"}
        assert all(took.keys() == {"with", "without", "other"} and min(took.values()) > 0 for took in calls.values())
