"""Gives the chief other callbacks or other data than the workers; prints the history, and what callbacks heard."""

import json
import os
import sys

import keras
import numpy as np

import dtjob_trainer as dt

mode, chief = sys.argv[1], os.environ["DTJOB_ROLE"] == "chief"
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
    case "structures":
        given = {"x": {"a": x[:n], "b": np.arange(n)}, "y": [y[:n]], "sample_weight": np.ones(n)}
keras.utils.set_random_seed(1)
entry = keras.Input((8,), name="a")
inputs = {"a": entry, "b": keras.Input((), name="b")} if mode == "structures" else entry
model = keras.Model(inputs, keras.layers.Dense(1)(entry))
model.compile("sgd", "mse", metrics=["mae"])
history = dt.fit(model, **given, batch_size=BATCH, epochs=EPOCHS, verbose=0)
print("told", json.dumps({"history": history.history, "heard": heard}), flush=True)
