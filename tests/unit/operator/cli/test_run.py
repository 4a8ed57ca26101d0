# SPDX-License-Identifier: Apache-2.0
"""`dtjob run`: what it refuses to begin. What it does is in tests/trainer."""

import signal
from pathlib import Path

import pytest

from dtjob.cli.run import Options, run
from dtjob.local.outcome import Outcome
from dtjob.manifests.script import Script
from tests.unit.operator.cli.manifest import GOOD
from tests.unit.operator.local.display.snapshots import snapshot
from tests.unit.page_commands import ROOT


def test_run_says_what_a_machine_without_a_cluster_cannot(dtjob, good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = dtjob("run", good)
    assert code == 2
    assert "spec.program.entrypoint: digits.py is no file below" in err
    image_only = tmp_path / "image.yaml"
    lines = [line for line in GOOD.splitlines() if "program:" not in line]
    image_only.write_text("\n".join(lines).replace(", everySteps: 100", ""))
    code, _, err = dtjob("run", image_only)
    assert code == 2
    assert "spec.program: needed by `dtjob run`" in err


def test_run_refuses_strategy_tpu_before_the_start_on_a_machine_without_one(dtjob, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("dtjob.cli.run.has_tpu", lambda: False)
    code, _, err = dtjob("run", "examples/digits-tpu.yaml", "--work-dir", tmp_path / "runs")
    assert code == 2
    assert "spec.strategy: TPU needs a TPU, and this machine has none" in err
    assert not (tmp_path / "runs").exists()


def test_run_says_what_a_manifest_says_in_vain(good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits.py").touch()
    rules = "failurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [0, 1]}}]}"
    good.write_text(f"{GOOD}  {rules}\n  tensorBoard:\n")
    said: list[str] = []

    async def told(*given: object) -> Outcome:
        said.extend(given[-1])
        return Outcome(snapshot(), signal.SIGINT)

    monkeypatch.setattr("dtjob.cli.run._train", told)
    run(Options(Script(good), tmp_path))
    assert [one.partition(" ")[0] for one in said] == [
        "spec.tensorBoard",
        "spec.failurePolicy.rules[0].onExitCodes.values:",
    ]


@pytest.mark.parametrize(
    ("where", "told"),
    [(".dtjob", "dtjob run digits.yaml "), ("my runs", "dtjob run digits.yaml --work-dir 'my runs' ")],
)
def test_the_command_that_goes_on_finds_the_run_again(good, tmp_path, monkeypatch, capsys, where, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits.py").touch()

    async def stopped(*_: object) -> Outcome:
        return Outcome(snapshot(), signal.SIGINT)

    monkeypatch.setattr("dtjob.cli.run._train", stopped)
    assert run(Options(Script(Path(good.name)), Path(where), fresh=True)) == 128 + signal.SIGINT
    assert told in capsys.readouterr().out
