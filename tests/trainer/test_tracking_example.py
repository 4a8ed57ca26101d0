# SPDX-License-Identifier: Apache-2.0
"""examples/tracking.py, with a module in place of wandb that writes down what it is told."""

import json
import shutil
from pathlib import Path

import pytest

from tests.trainer.support.harness import ROOT, Cluster

WANDB = """
import json, os

class Run:
    def log(self, logs, step):
        with open("told", "a") as file:
            print(json.dumps([step, sorted(logs)]), file=file)

def init(project):
    return Run()
"""


@pytest.mark.slow
def test_the_chief_alone_sends_each_epoch_once(tmp_path: Path) -> None:
    for name in ("tracking.py", "digits.npz"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    (tmp_path / "wandb.py").write_text(WANDB)
    with Cluster(tmp_path, "MultiWorkerMirrored", {"worker": 2}, tmp_path / "tracking.py") as run:
        run.run()
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    assert told == [[epoch, ["accuracy", "loss", "val_accuracy", "val_loss"]] for epoch in range(20)]
