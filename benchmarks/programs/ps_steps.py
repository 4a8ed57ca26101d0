# SPDX-License-Identifier: Apache-2.0
"""Steps of a fixed length under ParameterServer: ps_steps.py WORKERS ROUNDS FILE SECONDS…

Writes to FILE, as JSON, a row for each length: steps per second of each round, by side. `fit`, `modelFit` and `train`
are dt.fit, Model.fit and dt.train. `fitAlone`, `modelFitAlone` and `trainAlone` are the same steps on the same batches,
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

workers, rounds, file = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
LENGTHS = [float(each) for each in sys.argv[4:]]
TURN_SECONDS = 3
strategy = dt.strategy()
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)


def compute(seconds):
    """Take some time, on any processor: the steps of more workers than cores take no longer."""
    end = tf.timestamp() + seconds
    count = [tf.constant(0, tf.int64)]
    return tf.while_loop(lambda _: tf.timestamp() < end, lambda i: [i + 1], count, parallel_iterations=1)[0]


class Slow(keras.layers.Layer):
    """Gives back its input after some time."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def call(self, x):
        return x + 0.0 * tf.cast(compute(self.seconds), x.dtype)


def network(seconds):
    return keras.Sequential([keras.Input((4,)), Slow(seconds), keras.layers.Dense(1)])


def scheduled(step, *arrays):
    """Schedule a call of `step` for each row of the arrays, and wait for all; steps per second.

    Each batch is made and freed in turn, as from a Dataset. To free one, TensorFlow calls the worker that had it.
    """
    began = time.perf_counter()
    for row in range(len(arrays[0])):
        coordinator.schedule(step, args=tuple(tf.constant(array[row : row + 1]) for array in arrays))
    coordinator.join()
    return len(arrays[0]) / (time.perf_counter() - began)


class Turns(keras.callbacks.Callback):
    """Measures each epoch of a fit, and before it as many steps alone. The first of each does not count."""

    def __init__(self, alone):
        super().__init__()
        self.alone, self.rates, self.others = alone, [], []

    def on_epoch_begin(self, epoch, logs=None):
        self.others.append(self.alone())
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.rates.append(steps / (time.perf_counter() - self.began))


def by_fit(seconds, fit):
    """The rates of `fit`, and of the model's step alone."""
    model, optimizer = network(seconds), keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    losses, count = tf.Variable(0.0), tf.Variable(0.0)

    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        losses.assign_add(loss)
        count.assign_add(1.0)
        return loss

    signature = [tf.TensorSpec([None, 4]), tf.TensorSpec([None, 1])]
    step = tf.function(lambda x, y: strategy.run(replica, args=(x, y)), input_signature=signature)

    turns, trained = Turns(lambda: scheduled(step, x, y)), network(seconds)
    trained.compile(keras.optimizers.SGD(0.01), "mse")
    fit(trained, x, y, batch_size=1, epochs=rounds + 1, callbacks=[turns], verbose=0)
    return turns.rates[1:], turns.others[1:]


def by_train(seconds):
    """The rates of dt.train, and of its step alone: by the times at which steps end, without the first ones."""
    first = 2 * workers
    ends, count = tf.Variable(tf.zeros(first + steps, tf.float64)), tf.Variable(0)

    def step_fn(batch):
        computed = compute(seconds)
        with tf.control_dependencies([computed]):
            number = count.assign_add(1)
            ends.scatter_nd_update([[number - 1]], [tf.timestamp()])
        return {"loss": tf.reduce_mean(batch)}

    step = tf.function(lambda batch: strategy.run(step_fn, args=(batch,)), input_signature=[tf.TensorSpec([None, 4])])
    rows = np.zeros((first + steps, 4), np.float32)

    def rate(run):
        count.assign(0)
        run()
        done = np.sort(ends.numpy())
        return float(steps / (done[-1] - done[first - 1]))

    def by_dtjob():
        dt.train(step_fn, rows, batch_size=1, variables=[ends, count], total_steps=len(rows))

    scheduled(step, rows[:workers])
    rates = [(rate(by_dtjob), rate(lambda: scheduled(step, rows))) for _ in range(rounds)]
    return [one for one, _ in rates], [other for _, other in rates]


result = []
for seconds in LENGTHS:
    steps = workers * max(4, round(TURN_SECONDS / seconds))
    x, y = np.zeros((steps, 4), np.float32), np.zeros((steps, 1), np.float32)
    row = {"seconds": seconds}
    row["fit"], row["fitAlone"] = by_fit(seconds, dt.fit)
    row["modelFit"], row["modelFitAlone"] = by_fit(seconds, keras.Model.fit)
    row["train"], row["trainAlone"] = by_train(seconds)
    result.append(row)
    print(result[-1], flush=True)
if dt.is_chief():
    file.write_text(json.dumps(result))
