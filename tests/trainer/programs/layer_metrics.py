# SPDX-License-Identifier: Apache-2.0
"""Trains with a layer whose call updates metrics, on 61 examples in batches of 20, and prints what these came to."""

import json

import keras
import numpy as np

import dtjob_trainer as dt

x = np.random.default_rng(7).normal(size=(61, 5)).astype("float32")


class Counting(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.rows, self.level = keras.metrics.Sum(name="rows"), keras.metrics.Mean(name="level")

    def call(self, inputs):
        self.rows.update_state(keras.ops.ones_like(inputs[:, 0]))
        self.level.update_state(keras.ops.mean(inputs))
        return inputs


model = keras.Sequential([keras.Input((5,)), Counting(), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.0), "mse")
held = {"validation_data": (x, x[:, :1]), "validation_batch_size": 20}
history = dt.fit(model, x, x[:, :1], batch_size=20, shuffle=False, **held).history
wanted = float(np.mean([x[begin : begin + 20].mean() for begin in range(0, 61, 20)]))
print("seen", json.dumps({name: values[-1] for name, values in history.items()} | {"wanted": wanted}), flush=True)
