# SPDX-License-Identifier: Apache-2.0
"""promtool: the alerts of the chart fire when they should, and the metrics follow Prometheus' conventions."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit import exposed_metrics
from tools import binaries
from tools.chart import CHART

RULES = CHART / "files" / "rules.yaml"
TESTS = Path(__file__).parent / "alerts.yaml"


@pytest.fixture(scope="module")
def promtool(pytestconfig: pytest.Config) -> Path:
    """Skips where it cannot be had."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # building takes minutes, and says so
            return binaries.find(("promtool",))["promtool"]
    except binaries.BinariesError as error:
        pytest.skip(f"no promtool: {str(error).splitlines()[0]}")


def said(promtool: Path, *arguments: str, stdin: str = "", directory: Path | None = None) -> str:
    """What promtool prints. Fails if it does not end with 0."""
    command = [str(promtool), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=directory)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_rules_have_no_mistakes(promtool: Path) -> None:
    assert "13 rules found" in said(promtool, "check", "rules", "--lint=all", "--lint-fatal", str(RULES))


def test_alerts_fire_when_they_should_and_say_the_job_and_the_cause(promtool: Path, tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path / "rules.yaml")
    shutil.copy(TESTS, tmp_path)
    said(promtool, "test", "rules", TESTS.name, directory=tmp_path)


def test_each_alert_is_seen_to_fire_and_not_to_fire() -> None:
    rules = yaml.safe_load(RULES.read_text())
    names = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    cases: list[dict[str, Any]] = [
        one for test in yaml.safe_load(TESTS.read_text())["tests"] for one in test["alert_rule_test"]
    ]
    assert {one["alertname"] for one in cases if one["exp_alerts"]} == names
    assert {one["alertname"] for one in cases if not one["exp_alerts"]} == names


@pytest.mark.parametrize("whose", [exposed_metrics.of_operator, exposed_metrics.of_trainer])
def test_metrics_follow_the_conventions_of_prometheus(promtool: Path, whose: Any) -> None:
    assert said(promtool, "check", "metrics", stdin=whose()) == ""
