# SPDX-License-Identifier: Apache-2.0
"""Trains on examples that are their own numbers, and tells at the end which have counted in each epoch.

It waits in the middle of its data for the file --gate, so that a test can end it within an epoch.
"""

import argparse
import itertools
import json
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

COUNTS = (40, 0, 17, 56, 8)  # of the files: 121 examples, whose last batch of 8 has one
N, BATCH, EPOCHS = sum(COUNTS), 8, 2
parser = argparse.ArgumentParser()
parser.add_argument("--data", choices=["files", "shuffled", "dataset"], required=True)
parser.add_argument("--hold", type=int, default=0, help="wait before this example that this process reads, from 1")
parser.add_argument("--gate", type=Path)
options = parser.parse_args()
reads = itertools.count(1)


def held(number):
    """The example's number, which nobody gets before the gate is open."""
    if next(reads) == options.hold:
        while not options.gate.exists():
            time.sleep(0.01)
    return np.int64(number)


def example(number):
    value = tf.cast(tf.ensure_shape(tf.numpy_function(held, [number], tf.int64), ()), tf.float32)[None] / N
    return value, value


def numbers_of(pieces):
    """The numbers of the examples in these pieces of files."""
    before = np.concatenate([[0], np.cumsum(COUNTS)])
    return [before[file] + first + i for file, first, count in pieces for i in range(count)]


def data(context):
    by_file = options.data == "files"
    mine = np.array(numbers_of(context.files(COUNTS)), np.int64) if by_file else context.shuffled(N)
    return tf.data.Dataset.from_tensor_slices(mine).map(example, num_parallel_calls=1)


def sum_of(y_true, y_pred):
    return N * y_true[:, 0] + 0.0 * y_pred[:, 0]


def squares_of(y_true, y_pred):
    return tf.square(N * y_true[:, 0]) + 0.0 * y_pred[:, 0]


model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.1, momentum=0.5), "mse", metrics=[sum_of, squares_of])
if options.data == "dataset":
    arguments = {"x": tf.data.Dataset.range(N).map(example, num_parallel_calls=1).batch(BATCH)}
else:
    arguments = {"x": data, "batch_size": BATCH}
history = dt.fit(model, **arguments, epochs=EPOCHS)
if dt.is_chief():
    weights = [float(value) for weight in model.get_weights() for value in weight.ravel()]
    print(f"told {json.dumps({'history': history.history, 'weights': weights})}", flush=True)
