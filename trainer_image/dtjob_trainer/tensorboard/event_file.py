# SPDX-License-Identifier: Apache-2.0
"""Scalars for TensorBoard, record by record: tf.summary has no way to say that a resumed run does steps again."""

import os
import socket
import time
from collections.abc import Callable, Mapping

import tensorflow as tf

_SCALARS = tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
_METADATA = tf.compat.v1.SummaryMetadata(plugin_data=_SCALARS, data_class=1)  # DATA_CLASS_SCALAR


class Events:
    """An event file in one directory, a path or gs://; made at the first scalar.

    What an earlier process wrote there stays, but TensorBoard shows none of it from this one's first step on: a run
    that is resumed from a checkpoint does those steps again. Storage that is full, or away for a moment, costs curves
    and no training: `warn` is told once, and the next scalars go to a file of their own.
    """

    def __init__(self, directory: str, warn: Callable[[str], object]) -> None:
        self._directory, self._warn = directory, warn
        self._writer: tf.io.TFRecordWriter | None = None
        self._failed = False

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write `values` at `step`, as tf.summary.scalar does; on disk when this returns, else `warn` hears."""
        try:
            self._scalars(step, values)
        except (tf.errors.OpError, OSError) as error:
            self._writer = None
            if not self._failed:
                self._warn(f"{self._directory}: nothing can be written for TensorBoard: {error}")
            self._failed = True
        else:
            self._failed = False

    def _scalars(self, step: int, values: Mapping[str, float]) -> None:
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
