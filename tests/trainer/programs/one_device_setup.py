# SPDX-License-Identifier: Apache-2.0
"""Options, data and models of the cases that one_device.py trains."""

import argparse
import importlib
import types

import keras as keras_3
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--reference", action="store_true")
parser.add_argument("--out", required=True)
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
parser.add_argument("--cases", help="names, with commas between them; all where it is left out")
parser.add_argument("--examples", type=int, default=61)
parser.add_argument("--tell", action="store_true", help="go on after a case that is refused")
options = parser.parse_args()
keras, LEGACY = importlib.import_module(options.package), options.package == "tf_keras"
N, BATCH, VALID = options.examples, 20, 33
"""With 61, the last batch holds one, so that all replicas but one get none; no batch is cut evenly by three."""
layers, losses, metrics, optimizers = keras.layers, keras.losses, keras.metrics, keras.optimizers
random = np.random.default_rng(7)
x = random.normal(size=(N, 5)).astype("float32")
y = (x @ random.normal(size=(5, 1)) + 0.1 * random.normal(size=(N, 1))).astype("float32")
classes = random.integers(0, 3, N)
SOME_CLASSES = {0: 0.2, 2: 3.0} | ({1: 1.0} if LEGACY else {})  # tf_keras wants all classes named
weights = random.uniform(0.1, 3.0, N).astype("float32")
xv, yv, wv = x[:VALID] + 0.1, y[:VALID], weights[:VALID][::-1].copy()
sequences = random.normal(size=(N, 6, 3)).astype("float32")
for row, length in enumerate(random.integers(0, 7, N)):
    sequences[row, length:] = 0.0  # masked; some rows whole
CLIPPED, EVERY = {"global_clipnorm": 0.1}, {"gradient_accumulation_steps": 2}
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def train(model, *data, epochs=3, batch_size=BATCH, **arguments):
    batched_already = tf.data.Dataset | keras_3.utils.PyDataset | types.GeneratorType
    if isinstance(data[0], batched_already) or hasattr(data[0], "on_epoch_end"):
        batch_size = None
    if options.reference:
        kwargs = {"shuffle": False, "verbose": 0}
        history = model.fit(*data, epochs=epochs, batch_size=batch_size, **kwargs, **arguments)
    else:
        history = dt.fit(model, *data, epochs=epochs, batch_size=batch_size, shuffle=False, **arguments)
    logs = {key: [np.asarray(value).tolist() for value in values] for key, values in history.history.items()}
    return {"history": logs, "weights": model.get_weights()}


def compiled(model, optimizer, loss, **arguments):
    model.compile(optimizer, loss, jit_compile=False, **arguments)
    return model


def dense(*extra, units=1, activation=None, **arguments):
    hidden = layers.Dense(4, "tanh", kernel_regularizer="l2")
    return keras.Sequential([keras.Input((5,)), hidden, *extra, layers.Dense(units, activation, **arguments)])


def adam(**arguments):
    return optimizers.Adam(0.01, **arguments)


def batched(*parts, batch=BATCH):
    return tf.data.Dataset.from_tensor_slices(parts).batch(batch)
