# SPDX-License-Identifier: Apache-2.0
"""Trains on numbers that data workers make slowly. The chief notes the means of the numbers and of their squares."""

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


def first(y_true, y_pred):
    return y_true[:, 0] + 0.0 * y_pred[:, 0]


def square(y_true, y_pred):
    return y_true[:, 0] ** 2 + 0.0 * y_pred[:, 0]


class Note(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs):
        if dt.is_chief():
            with options.notes.open("a") as notes:
                notes.write(f"{epoch} {logs['first']:.3f} {logs['square']:.2f}\n")


model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.0), "mse", metrics=[first, square])
data = tf.data.Dataset.range(N).shuffle(N).map(make).batch(BATCH).prefetch(2)
model.fit(data, epochs=options.epochs, callbacks=[Note()], verbose=0)
