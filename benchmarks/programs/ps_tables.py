# SPDX-License-Identifier: Apache-2.0
"""Steps that look up rows of a table under ParameterServer: ps_tables.py ROUNDS FILE MEGABYTES…

Writes to FILE, as JSON, a row for each size of the table: milliseconds a step of each round, by side. `dtjob` is dt.fit
with an Embedding of Keras 3 and SGD. `alone` is `tf.nn.embedding_lookup` and the same update of the same rows,
scheduled on TensorFlow's ClusterCoordinator.
"""

import json
import sys
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

rounds, file = int(sys.argv[1]), Path(sys.argv[2])
SIZES = [float(each) for each in sys.argv[3:]]
STEPS, BATCH, IDS, WIDTH, RATE = 60, 8, 8, 64, 0.1
strategy = dt.strategy()
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)


class Turns(keras.callbacks.Callback):
    """Measures each epoch of dt.fit, and before it as many steps alone. The first of each does not count."""

    def __init__(self, alone):
        super().__init__()
        self.alone, self.times, self.others = alone, [], []

    def on_epoch_begin(self, epoch, logs=None):
        began = time.perf_counter()
        self.alone()
        self.others.append(1000 * (time.perf_counter() - began) / STEPS)
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.times.append(1000 * (time.perf_counter() - self.began) / STEPS)


def network(rows):
    ids = keras.Input((IDS,), dtype="int32")
    found = keras.layers.Flatten()(keras.layers.Embedding(rows, WIDTH)(ids))
    return keras.Model(ids, keras.layers.Dense(1)(found))


def step_alone(rows):
    """The model's step without Keras. Its table has the shards that the job's partitioner gives."""
    with strategy.scope():
        table = tf.Variable(lambda shape=(rows, WIDTH), **_: tf.zeros(shape), shape=(rows, WIDTH), dtype=tf.float32)
        weights, bias = tf.Variable(tf.zeros((IDS * WIDTH, 1))), tf.Variable(tf.zeros(1))
        losses, count = tf.Variable(0.0), tf.Variable(0.0)
    shards = list(getattr(table, "variables", [table]))

    def replica(x, y):
        with tf.GradientTape() as tape:
            found = tf.reshape(tf.nn.embedding_lookup(shards, x), (-1, IDS * WIDTH))
            loss = tf.reduce_mean((found @ weights + bias - y) ** 2)
        *slices, of_weights, of_bias = tape.gradient(loss, [*shards, weights, bias])
        for shard, each in zip(shards, slices, strict=True):
            shard.scatter_sub(tf.IndexedSlices(RATE * each.values, each.indices))
        weights.assign_sub(RATE * of_weights)
        bias.assign_sub(RATE * of_bias)
        losses.assign_add(loss)
        count.assign_add(1.0)
        return loss

    signature = [tf.TensorSpec([None, IDS], tf.int32), tf.TensorSpec([None, 1])]
    return tf.function(lambda x, y: strategy.run(replica, args=(x, y)), input_signature=signature)


def measured(megabytes):
    """The row of one size."""
    rows = int(megabytes * 1e6 / 4 / WIDTH)
    x = np.random.default_rng(0).integers(0, rows, (STEPS * BATCH, IDS)).astype(np.int32)
    y = np.zeros((len(x), 1), np.float32)
    step = step_alone(rows)

    def alone():
        for first in range(0, len(x), BATCH):
            batch = slice(first, first + BATCH)
            coordinator.schedule(step, args=(tf.constant(x[batch]), tf.constant(y[batch])))
        coordinator.join()

    model, turns = network(rows), Turns(alone)
    model.compile(keras.optimizers.SGD(RATE), "mse")
    dt.fit(model, x, y, batch_size=BATCH, epochs=rounds + 1, callbacks=[turns], verbose=0)
    return {"megabytes": megabytes, "dtjob": turns.times[1:], "alone": turns.others[1:]}


result = []
for megabytes in SIZES:
    result.append(measured(megabytes))
    print(result[-1], flush=True)
if dt.is_chief():
    file.write_text(json.dumps(result))
