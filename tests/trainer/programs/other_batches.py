# SPDX-License-Identifier: Apache-2.0
"""Trains 256 examples in batches of the size that it is told, and notes how many each epoch had; may end itself."""

import sys

import keras
import numpy as np
from asked_to_end import ask_for_an_end

import dtjob_trainer as dt

size, ends_after = int(sys.argv[1]), int(sys.argv[2])
x = np.arange(256, dtype="float32")[:, None] / 256
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")


class Notes(keras.callbacks.Callback):
    """What each epoch had in this process."""

    rows = steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.rows, self.steps = self.rows + size, self.steps + 1
        if self.steps == ends_after:
            ask_for_an_end()

    def on_epoch_end(self, epoch, logs=None):
        print("epoch", epoch, "rows", self.rows, flush=True)
        self.rows = 0

    def get_state(self):
        return {}

    def set_state(self, state):
        pass


found = dt.fit(model, x, x, batch_size=size, epochs=4, verbose=0, callbacks=[Notes()])
print("losses", len(found.history["loss"]), "of epochs", found.epoch, flush=True)
