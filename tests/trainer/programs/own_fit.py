# SPDX-License-Identifier: Apache-2.0
"""A model whose class overrides fit() to preprocess, as keras_hub's tasks do, beside one that is given what that makes.

`python own_fit.py PACKAGE`; with `--alone` the override trains by itself and never calls super().fit().
"""

import importlib
import sys

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

keras = importlib.import_module(sys.argv[1])


def scaled(x, y):
    return tf.cast(x, tf.float32) / 100, y


class Preprocesses(keras.Sequential):
    """Takes whole numbers, and trains on parts of a hundred."""

    def fit(self, x=None, y=None, batch_size=None, validation_data=None, validation_split=None, **kwargs):
        if "--alone" in sys.argv:
            return [self.train_on_batch(x / 100, y)]
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch_size or 32).map(scaled)
        return super().fit(
            data, y=None, batch_size=None, validation_data=validation_data, validation_split=None, **kwargs
        )

    def evaluate(self, x=None, y=None, batch_size=None, **kwargs):
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch_size or 32).map(scaled)
        return super().evaluate(data, **kwargs)


def made(kind):
    model = kind([keras.layers.Input((4,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


numbers = np.random.default_rng(0).integers(0, 100, (96, 4))
targets = (numbers.sum(1, keepdims=True) / 100).astype("float32")
mine, plain = made(Preprocesses), made(keras.Sequential)
history = dt.fit(mine, numbers, targets, 24, epochs=2, validation_data=(numbers, targets), verbose=0, seed=3)
data = tf.data.Dataset.from_tensor_slices((numbers, targets)).map(scaled).batch(24)
expected = dt.fit(plain, data, epochs=2, validation_data=data, verbose=0)
assert not any("fit" in vars(kind) and vars(kind)["fit"].__module__.endswith("own_fit") for kind in type(plain).__mro__)
if dt.is_chief():
    for told in (history.history, expected.history):
        print("found", *told["loss"], *told["val_loss"], flush=True)
