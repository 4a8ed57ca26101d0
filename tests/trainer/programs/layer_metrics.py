"""Trains with a layer whose call updates a metric, on 61 examples in batches of 20, and prints what it has counted."""

import json

import keras
import numpy as np

import dtjob_trainer as dt

x = np.random.default_rng(7).normal(size=(61, 5)).astype("float32")


class Counting(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.rows = keras.metrics.Sum(name="rows")

    def call(self, inputs):
        self.rows.update_state(keras.ops.ones_like(inputs[:, 0]))
        return inputs


model = keras.Sequential([keras.Input((5,)), Counting(), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.0), "mse")
held = {"validation_data": (x, x[:, :1]), "validation_batch_size": 20}
history = dt.fit(model, x, x[:, :1], batch_size=20, **held).history
print("seen", json.dumps({name: values[-1] for name, values in history.items()}), flush=True)
