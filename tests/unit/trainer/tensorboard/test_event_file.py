# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.tensorboard.event_file: storage that takes nothing for a while costs curves, and no training."""

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.tensorboard.event_file import Events


class Full:
    """A writer on a disk with no room."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, record: bytes) -> None:
        pass

    def flush(self) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, f"{self.path}; No space left on device")


def test_a_failed_write_is_reported_once_and_later_events_go_to_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    events = Events(str(tmp_path / "events"), warned.append)
    events.scalars(10, {"loss": 3.0})
    with monkeypatch.context() as patch:
        patch.setattr(tf.io, "TFRecordWriter", Full)
        events._writer = Full("events.out")
        for step in (20, 30):
            events.scalars(step, {"loss": 2.0})
    (said,) = warned
    assert "nothing can be written for TensorBoard" in said
    assert "No space left on device" in said
    events.scalars(40, {"loss": 1.0})
    assert losses(tmp_path / "events") == [3.0, 1.0]


def losses(directory: Path) -> list[float]:
    found: list[float] = []
    for path in sorted(directory.iterdir()):
        for record in tf.data.TFRecordDataset(str(path)):
            event: Any = tf.compat.v1.Event.FromString(record.numpy())
            found += [float(tf.make_ndarray(value.tensor)) for value in event.summary.value]
    return found


def test_a_directory_that_cannot_be_made_is_no_end_of_training(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("a file")
    warned: list[str] = []
    events = Events(str(tmp_path / "events"), warned.append)
    events.scalars(10, {"loss": 3.0})
    assert len(warned) == 1
