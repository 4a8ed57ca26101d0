# SPDX-License-Identifier: Apache-2.0
"""What callbacks are told of metrics after each batch: against what tf_keras reads by itself, and what is known."""

import argparse
import importlib

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.process import runtime

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
package = parser.parse_args().package
keras = importlib.import_module(package)
exchanges = 0
reduce = tf.distribute.Strategy.reduce


def counted(*args, **kwargs):
    global exchanges
    exchanges += 1
    return reduce(*args, **kwargs)


tf.distribute.Strategy.reduce = counted


class Seen(keras.metrics.Metric):
    """The rows of all replicas, twice: variables that are put together in two ways."""

    def __init__(self):
        super().__init__(name="seen")
        self.seen = self.add_weight(name="seen", initializer="zeros", dtype="int32")
        how = {"name": "each", "shape": (), "initializer": "zeros"}
        if package == "keras":
            self.each = self.add_variable(**how, aggregation="mean")
        else:
            on_read, mean = tf.VariableSynchronization.ON_READ, tf.VariableAggregation.MEAN
            self.each = self.add_weight(**how, synchronization=on_read, aggregation=mean)

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.seen.assign_add(tf.shape(y_true)[0])
        self.each.assign_add(tf.cast(tf.shape(y_true)[0], tf.float32))

    def result(self):
        return {"seen": tf.identity(self.seen), "each": tf.identity(self.each)}


class Traced(keras.metrics.Metric):
    """The rows of all replicas, read in a function that is traced once, which Keras 3 does not allow for."""

    def __init__(self):
        super().__init__(name="traced")
        self.seen = self.add_weight(name="seen", initializer="zeros", dtype="int32")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.seen.assign_add(tf.shape(y_true)[0])

    @tf.function
    def result(self):
        return tf.identity(self.seen)


class Told(keras.callbacks.Callback):
    batches, ended = 0, None

    def on_train_batch_begin(self, batch, logs=None):
        self.before = exchanges
        if batch == 0 and self.ended is not None:
            assert exchanges == self.ended, f"{exchanges - self.ended} exchanges to begin the metrics anew"

    def on_epoch_end(self, epoch, logs=None):
        self.ended = exchanges

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        assert logs["seen"] == logs["each"] == 12 * (batch + 1), logs
        if traces:
            assert logs["traced"] == 12 * (batch + 1), logs
        elif package == "tf_keras":
            assert exchanges == self.before, f"{exchanges - self.before} exchanges of tf_keras's own"
            self.compare(logs)

    def compare(self, logs):
        own = {name: float(value) for name, value in self.model.get_metrics_result().items()}
        assert exchanges > self.before, "tf_keras has not read by itself"
        assert logs.keys() == own.keys(), (logs, own)
        for name, value in own.items():
            np.testing.assert_allclose(logs[name], value, rtol=1e-6, err_msg=name)


random = np.random.default_rng(1)
rows, targets = random.normal(size=(36, 4)).astype("float32"), random.integers(0, 2, (36, 1))
for traces in (False, True) if package == "tf_keras" else (False,):
    metrics = ["accuracy", keras.metrics.AUC(), Seen()]
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=[*metrics, Traced()] if traces else metrics)
    told = Told()
    dt.fit(model, rows, targets, batch_size=12, epochs=2, callbacks=[told])
    assert told.batches == 6
runtime.current().log("all well")
