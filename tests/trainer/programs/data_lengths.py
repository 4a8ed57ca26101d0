"""Trains on data of unknown length, as tasks see it that have unlike numbers of examples; prints what was counted.

Nothing is learned, so that an epoch's loss is the mean over its examples, however they are cut into batches.
"""

import argparse
import json
import os

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["shards", "unlike", "varying"])
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
    return tf.data.Dataset.from_tensor_slices((values[begin:end], np.concatenate([values[begin:end], numbers], 1)))


def shards(context):
    return examples(*SHARDS[context.shard]).filter(lambda *_: True)


def batches():
    """Of one length in each pass, or of one in each task."""
    global passes
    unlike = int(os.environ["DTJOB_INDEX"]) if os.environ["DTJOB_ROLE"] == "worker" else 0
    count = (5, 2, 7)[unlike if options.kind == "unlike" else passes % EPOCHS]
    passes += 1
    yield from examples(0, count * BATCH).batch(BATCH)


signature = tf.TensorSpec((None, 1), tf.float32), tf.TensorSpec((None, 2), tf.float32)
generated = tf.data.Dataset.from_generator(batches, output_signature=signature)
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
model.compile(keras.optimizers.SGD(0.0), lambda y, p: (y[:, :1] - p) ** 2, metrics=[Count()])
data = {"x": shards, "batch_size": BATCH} if options.kind == "shards" else {"x": generated}
history = dt.fit(model, **data, epochs=EPOCHS).history
if dt.is_chief():
    print("history", json.dumps(history | {"values": (values**2).ravel().tolist()}))
