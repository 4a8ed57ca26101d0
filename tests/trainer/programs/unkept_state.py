# SPDX-License-Identifier: Apache-2.0
"""Trains with a callback whose state is no JSON, and so in no checkpoint."""

import keras
import numpy as np

import dtjob_trainer as dt


class Forgets(keras.callbacks.Callback):
    """Keeps what it has seen in a set."""

    def get_state(self):
        return {"seen": {1, 2}}

    def set_state(self, state):
        pass


x = np.zeros((64, 1), "float32")
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
dt.fit(model, x, x, epochs=2, verbose=0, callbacks=[Forgets()])
