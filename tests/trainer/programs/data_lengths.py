# SPDX-License-Identifier: Apache-2.0
"""Trains on data of unknown length, as tasks see it that have unlike numbers of examples; prints what was counted.

Nothing is learned, so that an epoch's loss is the mean over its examples, however they are cut into batches. It has a
logarithm that is 0 for each of them and for a row of zeros is none.
"""

import argparse
import json
import os

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["shards", "ragged", "sparse", "unlike", "varying"])
options = parser.parse_args()
EPOCHS, BATCH, N = 3, 12, 90
SHARDS = ((0, 60), (60, 90), (90, 90))
"""Which examples the data function gives each task: the last one has none."""
values = np.random.default_rng(5).normal(size=(N, 1)).astype("float32")
passes = 0


class Count(keras.metrics.Metric):
    """The sum of the numbers of all examples, each of which is its own."""

    def __init__(self):
        super().__init__(name="numbers")
        self.total = self.add_weight(shape=(), initializer="zeros", name="total", dtype="float64")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(tf.reduce_sum(tf.cast(y_true[:, 1], tf.float64)))

    def result(self):
        return self.total.value


def examples(begin, end):
    numbers = np.arange(begin, end, dtype="float32")[:, None]
    targets = np.concatenate([values[begin:end], numbers, np.ones_like(numbers)], 1)
    kinds = {"ragged": tf.RaggedTensor.from_tensor, "sparse": tf.sparse.from_dense}
    return tf.data.Dataset.from_tensor_slices((kinds.get(options.kind, tf.constant)(values[begin:end]), targets))


def shards(context):
    return examples(*SHARDS[context.shard]).filter(lambda *_: True)


def batches():
    """Of one length in each pass, or of one in each task."""
    global passes
    unlike = int(os.environ["DTJOB_INDEX"]) if os.environ["DTJOB_ROLE"] == "worker" else 0
    count = (5, 2, 7)[unlike if options.kind == "unlike" else passes % EPOCHS]
    passes += 1
    yield from examples(0, count * BATCH).batch(BATCH)


signature = tf.TensorSpec((None, 1), tf.float32), tf.TensorSpec((None, 3), tf.float32)
generated = tf.data.Dataset.from_generator(batches, output_signature=signature)


class Sum(keras.layers.Layer):
    """The sum of each row."""

    def call(self, rows):
        return tf.reduce_sum(rows, 1, keepdims=True)

    def compute_output_shape(self, shape):
        return shape[0], 1


ragged = options.kind == "ragged"
inputs = keras.Input((None,) if ragged else (1,), ragged=ragged, sparse=options.kind == "sparse")
model = keras.Sequential([inputs, *([Sum()] if ragged else []), keras.layers.Dense(1, kernel_initializer="zeros")])
model.compile(keras.optimizers.SGD(0.0), lambda y, p: (y[:, :1] - p) ** 2 + tf.math.log(y[:, 2:]), metrics=[Count()])
data = {"x": generated} if options.kind in ("unlike", "varying") else {"x": shards, "batch_size": BATCH}
history = dt.fit(model, **data, epochs=EPOCHS).history
if dt.is_chief():
    print("history", json.dumps(history | {"values": (values**2).ravel().tolist()}))
