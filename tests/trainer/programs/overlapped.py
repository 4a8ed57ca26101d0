# SPDX-License-Identifier: Apache-2.0
"""Trains where steps run beside the reading of batches, as with GPUs; prints for how long steps waited, as JSON.

Steps and batches sleep, so that their times are known on a loaded machine, too. Runs by hand.
"""

import json
import time

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.loops import control, input_wait
from dtjob_trainer.process import progress

STEPS, BATCH = 12, 8
tf.config.experimental.set_synchronous_execution(False)
control.AGREE_SECONDS = 0.0  # at each step: a speed that was measured wrong leaves too few steps to measure
input_wait.LEAST_SECONDS, input_wait.MEASURED_SECONDS, input_wait.MEASURED_STEPS = 0.5, 0.0, 5
random = np.random.default_rng(3)
x = tf.constant(random.normal(size=(STEPS, BATCH, 5)).astype("float32"))
shares = []
keys = progress.Pace.keys


def told(self, *arguments):
    found = keys(self, *arguments)
    shares.append(found.get("inputWait"))
    return found


progress.Pace.keys = told


def slept(value, seconds):
    """`value` after so many seconds."""

    def sleep(value):
        time.sleep(seconds)
        return value

    return tf.ensure_shape(tf.numpy_function(sleep, [value], value.dtype), value.shape)


class Sleeping(keras.layers.Layer):
    """Takes so many seconds."""

    def __init__(self, seconds):
        super().__init__(trainable=False)
        self.seconds = seconds

    def call(self, inputs):
        return inputs + slept(tf.stop_gradient(inputs[:1, :1]), self.seconds) * 0


class OwnStep(keras.Model):
    """Each of its steps is a call of its own."""

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=inputs, y=targets, y_pred=self(inputs, training=True))
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}


def waits(kind, step, batch, callback=0.0):
    """The share that is told at the end, and the weights; `step`, `batch` and `callback` are seconds."""
    keras.utils.set_random_seed(1)
    shares.clear()
    inputs = keras.Input((5,))
    model = kind(inputs, keras.layers.Dense(1)(Sleeping(step)(inputs)))
    model.compile("sgd", "mse", jit_compile=False)
    data = tf.data.Dataset.range(STEPS).map(lambda number: (slept(x[number], batch), tf.ones([BATCH, 1])))
    ends = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: time.sleep(callback))
    dt.fit(model, data, epochs=2, callbacks=[ends])
    return shares[-1], [array.tolist() for array in model.get_weights()]


found = {
    "of a slow input": waits(OwnStep, 0.02, 0.2),
    "of a slow input that steps read": waits(keras.Model, 0.02, 0.2),
    "of an overlapped input": waits(OwnStep, 0.3, 0.15, callback=2.0),
}
input_wait.InputWait.measures = lambda *_: False
found["unmeasured"] = waits(keras.Model, 0.0, 0.0)
print("found", json.dumps(found))
