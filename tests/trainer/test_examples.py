"""The examples that no other test runs, under `dtjob run`, each to the accuracy that it is to reach."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.local_runs import LocalRun, manifest

CHECKPOINTS = {"storage": {"volume": {"emptyDir": {}}}, "everySteps": 100}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "arguments"),
    [
        ("transfer.yaml", []),
        ("big_input.yaml", ["--megabytes=32", "--epochs=2"]),
        ("digits-default.yaml", ["--epochs=5"]),
        ("digits-one-device.yaml", ["--epochs=5"]),
        ("digits-central-storage.yaml", ["--epochs=5"]),
    ],
)
def test_it_trains(tmp_path: Path, example: str, arguments: list[str]) -> None:
    entry = re.sub(r"-.*|\.yaml", "", example)
    if entry == "big_input":
        arguments = [*arguments, f"--directory={tmp_path / 'data'}"]
    program: dict[str, Any] = {"entrypoint": f"examples/{entry}.py", "args": arguments}
    file = manifest(example, tmp_path / "job.yaml", 1, program=program, checkpoint=CHECKPOINTS)
    with LocalRun(file, tmp_path / "runs") as run:
        code, result = run.end()
        assert code == 0, run.told
    assert result["metrics"]["val_accuracy"] > 0.9
