"""Scalars for TensorBoard, written without it: tf.summary.scalar needs it, and TensorFlow no longer brings it."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf


class Events:
    """Event files in one directory, a path or gs://."""

    def __init__(self, directory: str) -> None:
        self._writer = tf.summary.create_file_writer(directory)
        kind = tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
        self._metadata = tf.compat.v1.SummaryMetadata(plugin_data=kind, data_class=1)  # DATA_CLASS_SCALAR

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write `values` at `step`, as tf.summary.scalar does; they are on disk when this returns."""
        with self._writer.as_default(step=step):
            for name, value in values.items():
                tf.summary.write(name, tf.constant(value, tf.float32), metadata=self._metadata)
        self._writer.flush()
