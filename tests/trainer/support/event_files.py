# SPDX-License-Identifier: Apache-2.0
"""Reads event files as TensorBoard does. In a process of its own: the tests import no TensorFlow."""

import json
import os
import subprocess
import sys
from pathlib import Path

READ = """
import json, sys
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
board = EventAccumulator(sys.argv[1], size_guidance={"tensors": 0})
board.Reload()
import tensorflow as tf
found = {tag: [[e.step, float(tf.make_ndarray(e.tensor_proto))] for e in board.Tensors(tag)]
         for tag in board.Tags()["tensors"] if not tag.startswith("keras")}
print(json.dumps(found))
"""


def scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """Tag to (step, value), as TensorBoard shows them; Keras's drawing of its model left out."""
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", READ, str(directory)]
    found = json.loads(subprocess.run(command, env=env, capture_output=True, check=True).stdout)
    return {tag: [(step, value) for step, value in points] for tag, points in found.items()}
