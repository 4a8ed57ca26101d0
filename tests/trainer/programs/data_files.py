# SPDX-License-Identifier: Apache-2.0
"""Trains on files of uneven sizes whose examples are their own numbers; each task notes those that it decodes."""

import argparse
import os
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

COUNTS = (20, 0, 7, 26, 4)  # 57: the last batch of 8 has one example, so that all tasks but one have none in it
parser = argparse.ArgumentParser()
parser.add_argument("--by", choices=["file", "data", "cached"], required=True)
parser.add_argument("--notes", type=Path, required=True)
options = parser.parse_args()
TASK = f"{os.environ['DTJOB_ROLE']}-{os.environ['DTJOB_INDEX']}"

folder = options.notes / TASK
folder.mkdir(parents=True)
paths, first = [], 0
for number, count in enumerate(COUNTS):
    paths.append(str(folder / f"{number}.tfrecord"))
    with tf.io.TFRecordWriter(paths[-1]) as writer:
        for example in range(first, first + count):
            writer.write(np.int64(example).tobytes())
    first += count


def decode(epoch):
    def note(record):
        number = np.frombuffer(record, np.int64)[0]
        with (folder / f"epoch-{epoch}").open("a") as notes:
            notes.write(f"{number}\n")
        return number

    def decoded(record):
        number = tf.ensure_shape(tf.numpy_function(note, [record], tf.int64), ())
        return tf.cast(number, tf.float32)[None], tf.cast(number, tf.float32)[None]

    return decoded


def by_file(context):
    pieces = tf.data.Dataset.from_tensor_slices(context.files(COUNTS))
    records = pieces.flat_map(lambda p: tf.data.TFRecordDataset(tf.gather(paths, p[0])).skip(p[1]).take(p[2]))
    return records.map(decode(context.epoch))


def by_data(context):
    rows = tf.data.Dataset.from_tensor_slices(context.shuffled(sum(COUNTS)))
    return rows.map(lambda row: tf.strings.as_string(row)).map(
        lambda text: tf.numpy_function(lambda t: np.int64(t).tobytes(), [text], tf.string)
    ).map(decode(context.epoch))  # fmt: skip


def number(y_true, y_pred):
    return y_true[:, 0] + 0.0 * y_pred[:, 0]


model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(1e-6), "mse", metrics=[number])
if options.by == "cached":
    data = {"x": tf.data.TFRecordDataset(paths).map(decode("any")).apply(tf.data.experimental.assert_cardinality(57))}
    data["x"] = data["x"].cache().batch(8)
else:
    data = {"x": by_file if options.by == "file" else by_data, "batch_size": 8}
history = dt.fit(model, **data, epochs=3)
if dt.is_chief():
    print(f"history {history.history}")
    means = history.history["number"]
    assert np.allclose(means, (sum(COUNTS) - 1) / 2), means  # each counted once: what stands in counts nothing
