"""Scalars for TensorBoard, record by record: tf.summary has no way to say that a resumed run does steps again."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

import tensorflow as tf

_SCALARS = tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
_METADATA = tf.compat.v1.SummaryMetadata(plugin_data=_SCALARS, data_class=1)  # DATA_CLASS_SCALAR


class Events:
    """An event file in one directory, a path or gs://; made at the first scalar.

    What an earlier process wrote there stays, but TensorBoard shows none of it from this one's first step on: a run
    that is resumed from a checkpoint does those steps again.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._writer: tf.io.TFRecordWriter | None = None

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write `values` at `step`, as tf.summary.scalar does; they are on disk when this returns."""
        if self._writer is None:
            self._writer = self._open(step)
        summary = tf.compat.v1.Summary()
        for name, value in values.items():
            summary.value.add(tag=name, tensor=tf.make_tensor_proto(value, tf.float32), metadata=_METADATA)
        self._write(self._writer, step=step, summary=summary)
        self._writer.flush()

    def _open(self, step: int) -> tf.io.TFRecordWriter:
        tf.io.gfile.makedirs(self._directory)
        # TensorBoard reads the files in the order of their names
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}.v2"
        writer = tf.io.TFRecordWriter(f"{self._directory}/{name}")
        self._write(writer, file_version="brain.Event:2")
        started = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
        self._write(writer, step=step, session_log=started)
        return writer

    @staticmethod
    def _write(writer: tf.io.TFRecordWriter, **fields: object) -> None:
        writer.write(tf.compat.v1.Event(wall_time=time.time(), **fields).SerializeToString())
