# SPDX-License-Identifier: Apache-2.0
"""Trains on a PyDataset that shuffles its examples at epochs' ends; a pass of 12 batches spans epochs of 5 steps.

With the argument `generator`: on a from_generator that counts its own passes.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

x, y = np.ones((48, 3), "float32"), np.ones((48, 1), "float32")


class Batches(keras.utils.PyDataset):
    order = np.arange(48)

    def __len__(self):
        return 12

    def __getitem__(self, index):
        rows = self.order[index * 4 : index * 4 + 4]
        return x[rows], y[rows]

    def on_epoch_end(self):
        self.order = np.random.permutation(48)


passes = 0


def rows():
    """Each pass has an order of its own."""
    global passes
    passes += 1
    for row in np.random.default_rng(passes).permutation(48):
        yield x[row], y[row]


model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
if sys.argv[1:] == ["generator"]:
    signature = tf.TensorSpec((3,), tf.float32), tf.TensorSpec((1,), tf.float32)
    dt.fit(model, tf.data.Dataset.from_generator(rows, output_signature=signature).batch(8), epochs=2)
else:
    dt.fit(model, Batches(), epochs=4, steps_per_epoch=5)
