# SPDX-License-Identifier: Apache-2.0
"""Reads event files as TensorBoard does. In a process of its own: the tests import no TensorFlow."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.trainer.support.harness import by_hand

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


READ_MARKS = """
import json, sys
from tensorflow.tsl.profiler.protobuf import xplane_pb2
found = []
with open(sys.argv[1], "rb") as file:
    planes = xplane_pb2.XSpace.FromString(file.read()).planes
for plane in planes:
    stats = {number: one.name for number, one in plane.stat_metadata.items()}
    for event in [event for line in plane.lines for event in line.events]:
        if plane.event_metadata[event.metadata_id].name == "train":
            found += [stat.int64_value for stat in event.stats if stats[stat.metadata_id] == "step_num"]
print(json.dumps(found))
"""


def marked_steps(directory: Path) -> list[int]:
    """The steps that the one profile in this directory of events has marks of."""
    (file,) = directory.glob("plugins/profile/*/*.xplane.pb")
    found: list[int] = _answer(READ_MARKS, file)
    return found


def scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """Tag to (step, value), as TensorBoard shows them; Keras's drawing of its model left out."""
    found = _answer(READ, directory)
    return {tag: [(step, value) for step, value in points] for tag, points in found.items()}


def _answer(code: str, path: Path) -> Any:
    with TemporaryDirectory() as directory:
        return json.loads(by_hand(code, str(path), directory=Path(directory)).splitlines()[-1])
