# SPDX-License-Identifier: Apache-2.0
"""The scalars of TensorBoard's event files, as they grow. TensorBoard's own reader would import TensorFlow."""

import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtjob.ui.series import Series

_HEAD, _CHECKSUM = 12, 4
"""Bytes of a record before and after its data: the length with its checksum, and the checksum of the data."""
_LONGEST = 1 << 20
"""Bytes of a record that can hold scalars only. Others are images and graphs."""
_FLOAT = 1
"""DT_FLOAT."""
EVALUATOR = "evaluator"
"""The directory of the evaluator's files, and the first word of its curves."""


class EventFiles:
    """The event files of a run, below one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._training, self._evaluation, self._lock = Series(), Series(), threading.Lock()
        self._read: dict[Path, int] = {}
        """How many bytes of each file are read."""

    def curves(self) -> list[dict[str, Any]]:
        """The curves by now, empty without files."""
        with self._lock:
            # In the order of their names, which begin with a time: a later one says which steps of the others count.
            for path in sorted(self.directory.rglob("events.out.tfevents.*"), key=lambda path: path.name):
                is_evaluation = path.parent.name == EVALUATOR
                for event in self._added(path):
                    if is_evaluation:  # of checkpoints, which stay when training goes back to one
                        self._evaluation.add(event.step, dict(_scalars(event, f"{EVALUATOR} ")))
                        continue
                    if event.HasField("session_log") and event.session_log.status == event.session_log.START:
                        self._training.forget_from(event.step)
                    self._training.add(event.step, dict(_scalars(event)))
            return [*self._training.curves(), *self._evaluation.curves()]

    def _added(self, path: Path) -> Iterator[Any]:
        """The whole events that were added to a file. The last one may still be being written."""
        from google.protobuf.message import DecodeError
        from tensorboard.compat.proto.event_pb2 import Event

        with path.open("rb") as file:
            file.seek(self._read.setdefault(path, 0))
            while len(head := file.read(_HEAD)) == _HEAD:
                (length,) = struct.unpack_from("<Q", head)
                if length > _LONGEST:
                    file.seek(length, 1)
                    data = b""
                elif len(data := file.read(length)) < length:
                    return
                if len(file.read(_CHECKSUM)) < _CHECKSUM:
                    return
                self._read[path] = file.tell()
                try:
                    yield Event.FromString(data)
                except DecodeError:  # no event file, whatever its name says
                    return


def _scalars(event: Any, prefix: str = "") -> Iterator[tuple[str, float | None]]:
    for one in event.summary.value:
        yield prefix + one.tag, _scalar(one)


def _scalar(value: Any) -> float | None:
    """The number of a summary, None if it is something else."""
    if value.HasField("simple_value"):
        return float(value.simple_value)
    tensor = value.tensor
    if tensor.dtype != _FLOAT or tensor.tensor_shape.dim:
        return None
    if len(tensor.float_val) == 1:
        return float(tensor.float_val[0])
    content = tensor.tensor_content
    return float(struct.unpack("<f", content)[0]) if len(content) == struct.calcsize("f") else None
