# SPDX-License-Identifier: Apache-2.0
"""Trains on numbers that data workers make slowly. The chief notes of each epoch which numbers did not come once."""

import argparse
from pathlib import Path

import keras
import tensorflow as tf

import dtjob_trainer as dt

N, BATCH = 203, 8
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("--notes", type=Path, required=True)
options = parser.parse_args()


def make(index):
    work = tf.linalg.matmul(tf.ones([300, 300]), tf.ones([300, 300]))
    number = tf.cast(index, tf.float32) + 0.0 * tf.reduce_sum(work)
    return number[None], number[None]


class Times(keras.metrics.Metric):
    """How often numbers came in an epoch, in all tasks: how many `never` came, or how often too many came `again`."""

    def __init__(self, name):
        super().__init__(name=name)
        self.times = self.add_weight(shape=(N,), initializer="zeros", name="times")

    def update_state(self, y_true, y_pred, sample_weight=None):
        rows = tf.one_hot(tf.cast(y_true[:, 0], tf.int32), N)
        self.times.assign_add(tf.reduce_sum(rows if sample_weight is None else rows * sample_weight[:, None], 0))

    def result(self):
        over = self.times - 1.0
        return tf.reduce_sum(tf.nn.relu(over if self.name == "again" else -over))


class Note(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs):
        if dt.is_chief():
            with options.notes.open("a") as notes:
                notes.write(f"{epoch} {logs['never']:.0f} {logs['again']:.0f}\n")


model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.0), "mse", metrics=[Times("never"), Times("again")])
data = tf.data.Dataset.range(N).shuffle(N).map(make).batch(BATCH).prefetch(2)
model.fit(data, epochs=options.epochs, callbacks=[Note()], verbose=0)
