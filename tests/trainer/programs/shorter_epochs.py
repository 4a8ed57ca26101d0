# SPDX-License-Identifier: Apache-2.0
"""Trains a model with a step of its own in epochs of as many steps as it is told; may end itself in one of them."""

import sys

import keras
import numpy as np
from asked_to_end import ask_for_an_end

import dtjob_trainer as dt

steps, ends_after = int(sys.argv[1]), int(sys.argv[2])


class Counting(keras.Model):
    """Counts its steps."""

    def __init__(self):
        super().__init__()
        self.steps = self.add_weight(shape=(), initializer="zeros", name="steps")
        self.mean = keras.metrics.Mean(name="loss")

    def call(self, x):
        return x

    def train_step(self, data):
        self.steps.value.assign_add(1.0)
        self.mean.update_state(self.steps)
        return {"loss": self.mean.result()}


class EndsItself(keras.callbacks.Callback):
    """Asks for an end in a step of this process."""

    done = 0

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1
        if self.done == ends_after:
            ask_for_an_end()

    def get_state(self):
        return {}

    def set_state(self, state):
        pass


x = np.zeros((64, 1), "float32")
model = Counting()
model.compile("sgd", "mse")
found = dt.fit(
    model, x, x, batch_size=4, epochs=3, steps_per_epoch=steps, verbose=0, shuffle=False, callbacks=[EndsItself()]
)
print("losses", [round(loss, 3) for loss in found.history["loss"]], flush=True)
