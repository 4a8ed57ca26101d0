# SPDX-License-Identifier: Apache-2.0
"""Gives the chief other callbacks or other data than the workers; prints the history, and what callbacks heard.

given_apart.py MODE…: what refuses a mode is printed, but for the last one, which ends the program.
"""

import json
import os
import sys

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.errors import TrainerError

*refused, last = sys.argv[1:]
chief = os.environ["DTJOB_ROLE"] == "chief"
BATCHES, BATCH, EPOCHS = 8, 32, 3
x = np.random.default_rng(0).random((2 * BATCHES * BATCH, 8), np.float32)
y = x.sum(1, keepdims=True)
heard = {"train": 0, "test": 0}


class Heard(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        assert logs["loss"] > 0
        heard["train"] += 1

    def on_test_batch_end(self, batch, logs=None):
        assert logs["loss"] > 0
        heard["test"] += 1


def shard(n):
    """Rows of this task alone: the first n of the chief, other ones of the worker."""
    return {"x": x[:n] if chief else x[-n:], "y": y[:n] if chief else y[-n:]}


n = BATCHES * BATCH


def given_in(mode):  # noqa: C901  # a case for each mode
    given = {"x": x[:n], "y": y[:n]}
    match mode:
        case "callbacks" | "worker-callbacks":
            given["callbacks"] = [Heard()] if chief == (mode == "callbacks") else []
            given["validation_data"] = (x[n:], y[n:])
        case "rate":
            lower = keras.callbacks.LearningRateScheduler(lambda epoch: 0.01 / (1 + epoch))
            given["callbacks"] = [lower] if chief else []
        case "validation":
            given["validation_data"] = (x[n:], y[n:]) if chief else None
        case "lengths":
            given = shard(n if chief else n - 3 * BATCH)
        case "last-batch":
            given = shard(n if chief else n - 6)
        case "shards":
            given = shard(n)
        case "peek":  # the chief alone looks at a shuffled sample, so that its next shuffle() has another seed
            data = tf.data.Dataset.from_tensor_slices((x[:n], np.zeros((n, 1), np.float32)))
            if chief:
                list(data.shuffle(n).take(3))
            given = {"x": data.shuffle(n).batch(BATCH)}
        case "generator":  # of unknown length, in an order of its own in each task
            order = range(n) if chief else range(n - 1, -1, -1)
            spec = (tf.TensorSpec((8,), tf.float32), tf.TensorSpec((1,), tf.float32))
            data = tf.data.Dataset.from_generator(lambda: ((x[row], y[row]) for row in order), output_signature=spec)
            given = {"x": data.batch(BATCH)}
        case "interleave":
            files = tf.data.Dataset.range(4)
            data = files.interleave(
                lambda file: tf.data.Dataset.from_tensor_slices((x[:n], y[:n])).shard(4, file),
                num_parallel_calls=2,
                deterministic=False,
            )
            given = {"x": data.batch(BATCH)}
        case "structures":
            given = {"x": {"a": x[:n], "b": np.arange(n)}, "y": [y[:n]], "sample_weight": np.ones(n)}
    return given


def fit(mode):
    given = given_in(mode)
    keras.utils.set_random_seed(1)
    entry = keras.Input((8,), name="a")
    inputs = {"a": entry, "b": keras.Input((), name="b")} if mode == "structures" else entry
    model = keras.Model(inputs, keras.layers.Dense(1)(entry))
    loss = "mse"
    if mode == "loss" and not chief:  # not the sum of what it is for parts of a batch, so that tasks exchange rows
        loss = lambda y, y_pred: tf.sqrt(tf.reduce_sum((y - y_pred) ** 2))  # noqa: E731
    model.compile("sgd", loss, metrics=["mae"])
    if not isinstance(given["x"], tf.data.Dataset):
        given["batch_size"] = BATCH
    return dt.fit(model, **given, epochs=EPOCHS, verbose=0)


for mode in refused:
    try:
        fit(mode)
    except TrainerError as error:
        print(f"refused {mode}: {type(error).__name__}: {error}", flush=True)
print("told", json.dumps({"history": fit(last).history, "heard": heard}), flush=True)
