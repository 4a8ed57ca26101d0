"""Event files as TensorBoard reads them: of steps that were done twice it shows what was written last."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.trainer.harness import ROOT

WRITE_AND_READ = """
import json, sys
from dtjob_trainer.events import Events
first, second = Events(sys.argv[1]), Events(sys.argv[1])
for step in (10, 20, 30, 40):  # killed after a checkpoint at 20
    first.scalars(step, {"loss": 1.0, "accuracy": 0.5})
for step in (30, 40, 50):
    second.scalars(step, {"loss": 2.0})
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
import tensorflow as tf
board = EventAccumulator(sys.argv[1], size_guidance={"tensors": 0})
board.Reload()
print(json.dumps({tag: [[e.step, float(tf.make_ndarray(e.tensor_proto))] for e in board.Tensors(tag)]
                  for tag in board.Tags()["tensors"]}))
"""


def test_a_resumed_run_replaces_the_steps_that_it_does_again(tmp_path: Path) -> None:
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT / "trainer_image")}
    command = [sys.executable, "-c", WRITE_AND_READ, str(tmp_path)]
    found = json.loads(subprocess.run(command, env=env, capture_output=True, check=True).stdout)
    assert found["loss"] == [[10, 1.0], [20, 1.0], [30, 2.0], [40, 2.0], [50, 2.0]]
    assert found["accuracy"] == [[10, 0.5], [20, 0.5]]
