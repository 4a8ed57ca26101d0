# SPDX-License-Identifier: Apache-2.0
"""Event files as TensorFlow and the trainer write them, without TensorFlow."""

from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_FLOAT, DT_STRING
from tensorboard.summary.writer.record_writer import RecordWriter


def scalar(step: int, **values: float) -> Any:
    """As the trainer writes scalars."""
    tensors = {tag: TensorProto(dtype=DT_FLOAT, float_val=[value]) for tag, value in values.items()}
    return Event(step=step, summary=Summary(value=[Summary.Value(tag=tag, tensor=one) for tag, one in tensors.items()]))


def text(step: int, tag: str) -> Any:
    """As tf.summary.text writes."""
    tensor = TensorProto(dtype=DT_STRING, string_val=[b"words"])
    return Event(step=step, summary=Summary(value=[Summary.Value(tag=tag, tensor=tensor)]))


def start(step: int) -> Any:
    """As a process that resumes a run begins."""
    return Event(step=step, session_log=SessionLog(status=SessionLog.START))


def write(directory: Path, time: int, *events: Any) -> Path:
    """A file that was begun at this time. A file that is there is continued."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"events.out.tfevents.{time}.host.1.v2"
    with path.open("ab") as file:
        writer = RecordWriter(file)
        for event in events:
            writer.write(event.SerializeToString())
    return path
