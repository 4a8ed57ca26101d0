# SPDX-License-Identifier: Apache-2.0
"""The examples that no other test runs, under `dtjob run`, each to the metric that it is to reach."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.local_runs import LocalRun, manifest

CHECKPOINTS = {"storage": {"volume": {"emptyDir": {}}}, "everySteps": 100}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "arguments", "metric", "least"),
    [
        ("transfer.yaml", [], "val_accuracy", 0.9),
        ("big_input.yaml", ["--megabytes=32", "--epochs=2"], "val_accuracy", 0.9),
        ("recommender.yaml", ["--files=2"], "val_auc", 0.7),
        ("images.yaml", ["--images=256", "--epochs=4"], "val_accuracy", 0.9),
        ("digits-default.yaml", ["--epochs=5"], "val_accuracy", 0.9),
        ("digits-one-device.yaml", ["--epochs=5"], "val_accuracy", 0.9),
        ("digits-central-storage.yaml", ["--epochs=5"], "val_accuracy", 0.9),
    ],
)
def test_each_example_reaches_its_metric(
    tmp_path: Path, example: str, arguments: list[str], metric: str, least: float
) -> None:
    entry = re.sub(r"-.*|\.yaml", "", example)
    if entry in ("big_input", "recommender"):
        arguments = [*arguments, f"--directory={tmp_path / 'data'}"]
    program: dict[str, Any] = {"entrypoint": f"examples/{entry}.py", "args": arguments}
    file = manifest(example, tmp_path / "job.yaml", 1, program=program, checkpoint=CHECKPOINTS)
    with LocalRun(file, tmp_path / "runs") as run:
        code, result = run.end()
        assert code == 0, run.told
    assert result["metrics"][metric] > least
