# SPDX-License-Identifier: Apache-2.0
"""Predicts clicks from 13 numbers and 26 columns of categories, as in Criteo's data, with a wide and deep model.

The data is made on the spot. Its columns have 3 to 200,000 categories, of which a few are seen often and most rarely.
"""

import argparse
import os
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

NUMBERS = 13
SIZES = [3, 4, 7, 10, 14, 18, 24, 27, 60, 100, 105, 305, 583, 633, 1_000, 1_460, 2_173, 3_194, 5_461, 5_652, 10_000,
         12_517, 20_000, 50_000, 100_000, 200_000]  # categories of each column
BYTES = 4 * (NUMBERS + len(SIZES)) + 1

parser = argparse.ArgumentParser()
parser.add_argument("--files", type=int, default=6)
parser.add_argument("--examples", type=int, default=10_000, help="in each file")
parser.add_argument("--directory", type=Path, default=Path("/tmp/dtjob-recommender"))
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=1024)
parser.add_argument("--width", type=int, default=16, help="columns of each embedding")
options = parser.parse_args()


def path_of(file):
    """Where a file is. The name contains all that the content depends on."""
    return options.directory / f"{options.examples}-{file:05}.tfrecord"


def make(file):
    """Write a file under another name and rename it, because other tasks may write the same file to the same disk."""
    taste = np.random.default_rng(0)  # the same in all files: what makes users click
    slopes, tastes = taste.normal(scale=0.3, size=NUMBERS), [taste.normal(scale=0.5, size=size) for size in SIZES]
    random = np.random.default_rng(file + 1)
    numbers = random.normal(size=(options.examples, NUMBERS)).astype(np.float32)
    categories = np.stack([(size * random.random(options.examples) ** 8).astype(np.int32) for size in SIZES], axis=1)
    score = numbers @ slopes + sum(each[column] for each, column in zip(tastes, categories.T, strict=True))
    score += 0.5 * numbers[:, 0] * tastes[-1][categories[:, -1]] - 1.5
    clicks = (random.random(options.examples) < 1 / (1 + np.exp(-score))).astype(np.uint8)
    temporary = path_of(file).with_suffix(f".{os.getpid()}")
    with tf.io.TFRecordWriter(str(temporary)) as writer:
        for row in zip(numbers, categories, clicks, strict=True):
            writer.write(b"".join(value.tobytes() for value in row))
    temporary.rename(path_of(file))


def reader(files):
    """The data function of these files."""
    paths = tf.constant([str(path_of(file)) for file in files])

    def examples(context):
        # rows of (file, first example, examples): what this task reads of the epoch, in this order
        pieces = tf.data.Dataset.from_tensor_slices(context.files([options.examples] * len(files)))
        records = pieces.flat_map(lambda p: tf.data.TFRecordDataset(paths[p[0]]).skip(p[1]).take(p[2]))
        return records.batch(256).map(decode, num_parallel_calls=2).unbatch()

    return examples


def decode(records):
    """Numbers, categories and clicks of some records."""
    row = tf.ensure_shape(tf.io.decode_raw(records, tf.uint8), (None, BYTES))
    words = tf.reshape(row[:, :-1], (-1, NUMBERS + len(SIZES), 4))
    numbers, categories = tf.bitcast(words[:, :NUMBERS], tf.float32), tf.bitcast(words[:, NUMBERS:], tf.int32)
    return (numbers, categories), row[:, -1]


def wide_and_deep():
    """A linear model of all features, and a deep one with an embedding for each column. Their sum is the answer."""
    numbers = keras.Input((NUMBERS,))
    categories = keras.Input((len(SIZES),), dtype="int32")
    first = np.cumsum([0, *SIZES[:-1]]).astype(np.int32)  # the wide part has one table for all columns
    weights = keras.layers.Embedding(sum(SIZES), 1, embeddings_initializer="zeros")(categories + first)
    wide = keras.layers.Add()([keras.layers.Dense(1)(numbers), keras.layers.Flatten()(keras.ops.sum(weights, axis=1))])
    columns = [keras.layers.Embedding(size, options.width)(categories[:, i]) for i, size in enumerate(SIZES)]
    deep = keras.layers.Concatenate()([numbers, *columns])
    for units in (64, 32):
        deep = keras.layers.Dense(units, activation="relu")(deep)
    deep = keras.layers.Dense(1)(deep)
    clicks = keras.layers.Activation("sigmoid")(keras.layers.Add()([wide, deep]))
    return keras.Model([numbers, categories], clicks)


options.directory.mkdir(parents=True, exist_ok=True)
for file in range(options.files + 1):  # the last file is held out
    if not path_of(file).exists():
        make(file)

model = wide_and_deep()
model.compile(keras.optimizers.Adagrad(0.1), "binary_crossentropy", metrics=[keras.metrics.AUC(name="auc")])
history = dt.fit(model, reader(range(options.files)), batch_size=options.batch_size, epochs=options.epochs,
                 validation_data=reader([options.files]), save="model.keras")
if dt.is_chief():
    print("held-out AUC", *(f"{value:.4f}" for value in history.history["val_auc"]))
