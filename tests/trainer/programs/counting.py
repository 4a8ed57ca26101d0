# SPDX-License-Identifier: Apache-2.0
"""Adds 1 to each of 200 MB of weights at every step, so that each weight tells the step that it is from.

At the first step after a start it appends "STEP LOWEST HIGHEST" to the file `starts`; the last step done is in `step`.
"""

import argparse
import os
from pathlib import Path

import keras
import numpy as np

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--megabytes", type=int, default=200)
parser.add_argument("--directory", type=Path, required=True)
options = parser.parse_args()


class Counting(keras.Model):
    def __init__(self):
        super().__init__()
        self.table = self.add_weight(shape=(options.megabytes * 250_000,), initializer="zeros", name="table")
        self.steps = self.add_weight(shape=(), initializer="zeros", name="steps")

    def call(self, x):
        return x

    def train_step(self, data):
        self.steps.value.assign_add(1.0)
        self.table.value.assign_add(keras.ops.ones_like(self.table))
        return {"loss": self.steps * 0.0}


class Watch(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.started = False
        self.file = os.open(options.directory / "step", os.O_WRONLY | os.O_CREAT)

    def on_train_batch_begin(self, batch, logs=None):
        if not self.started:
            self.started = True
            table = self.model.table.numpy()
            with (options.directory / "starts").open("a") as starts:
                starts.write(f"{self.model.steps.numpy():.0f} {table.min():.0f} {table.max():.0f}\n")

    def on_train_batch_end(self, batch, logs=None):
        # in place: what was written last is read after a kill, whatever else is lost
        os.pwrite(self.file, f"{self.model.steps.numpy():012.0f}".encode(), 0)


model = Counting()
model.compile("sgd", "mse")
rows = np.zeros((1000, 1), np.float32)
dt.fit(model, rows, rows, batch_size=1, epochs=1_000_000, callbacks=[Watch()])
