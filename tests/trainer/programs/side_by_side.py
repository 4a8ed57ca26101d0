# SPDX-License-Identifier: Apache-2.0
"""Steps of 0.3 s under ParameterServer with two workers, each of which waits for another one that runs beside it.

Then for `fit` how long workers wait for their input, if steps and batches take a known time.
"""

import argparse
import time

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.loops import input_wait
from dtjob_trainer.process import progress

SECONDS, PATIENCE = 0.3, 20.0
STEPS = 9
"""The first step is alone, as the chief waits until it has seen one done."""

parser = argparse.ArgumentParser()
parser.add_argument("loop", choices=["fit", "train"])
loop = parser.parse_args().loop
arrived = tf.Variable(0, trainable=False)
alone = tf.Variable(0, trainable=False)


def beside_another():
    """1.0 after SECONDS, once another worker is in a step too: the second and third step, the fourth and fifth, …"""
    arrived.assign_add(1)
    mine = arrived.read_value()
    last_of_pair = mine + (mine + 1) % 2
    begun = tf.timestamp()

    def waits(_):
        seconds = tf.timestamp() - begun
        missing = arrived.read_value() < last_of_pair
        return tf.logical_or(seconds < SECONDS, tf.logical_and(missing, seconds < PATIENCE))

    (turns,) = tf.while_loop(waits, lambda i: [i + 1], [0], parallel_iterations=1)
    with tf.control_dependencies([turns]):
        late = tf.timestamp() - begun >= PATIENCE
    with tf.control_dependencies([alone.assign_add(tf.cast(late, tf.int32))]):
        return tf.constant(1.0)


class Waiting(keras.layers.Layer):
    def call(self, x):
        return x * beside_another()


def step(batch):
    return {"loss": tf.reduce_mean(batch) * beside_another()}


x = np.ones((STEPS, 4), np.float32)
if loop == "fit":
    model = keras.Sequential([keras.Input((4,)), Waiting(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    arrived.assign(0)  # building the model may have run the layer
    dt.fit(model, x, x[:, :1], batch_size=1, epochs=1, verbose=0)
else:
    dt.train(step, x, batch_size=1, variables=[arrived, alone], total_steps=STEPS)
assert int(arrived.numpy()) == STEPS, arrived
print(f"{int(alone.numpy())} of {STEPS} steps ran alone")
assert int(alone.numpy()) == 0
if loop == "train":
    raise SystemExit

input_wait.LEAST_SECONDS = 0.5
shares = []
keys = progress.Pace.keys


def told(self, *arguments):
    found = keys(self, *arguments)
    shares.append(found.get("inputWait"))
    return found


progress.Pace.keys = told


class Busy(keras.layers.Layer):
    """Takes so many seconds."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def call(self, x):
        begun = tf.timestamp()
        (turns,) = tf.while_loop(lambda _: tf.timestamp() - begun < self.seconds, lambda i: [i + 1], [0])
        return x + 0.0 * tf.cast(turns, x.dtype)


def waits(step, batch, steps):
    """The share of the time in which workers waited; `step` and `batch` are seconds.

    There are more than `steps` if no share is known after them: a slow host reports late.
    """

    def batches():
        number = 0
        while number < steps or shares[-1] is None:
            time.sleep(batch)
            number += 1
            yield x, x[:, :1]

    shares[:] = [None]
    x = np.ones((2, 4), np.float32)
    like = tf.TensorSpec((2, 4)), tf.TensorSpec((2, 1))
    model = keras.Sequential([keras.Input((4,)), Busy(step), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    dt.fit(model, tf.data.Dataset.from_generator(batches, output_signature=like), epochs=1, verbose=0)
    return shares[-1]


slow, overlapped = waits(0.05, 0.3, 16), waits(0.4, 0.1, 25)
print(f"workers wait for a slow input for {slow} of the time, and for an overlapped one for {overlapped}")
assert slow > 0.4, slow
assert overlapped < 0.25, overlapped
