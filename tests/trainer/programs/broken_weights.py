# SPDX-License-Identifier: Apache-2.0
"""Trains to weights that are no numbers, or infinite, by a loss that divides by zero or overflows."""

import argparse

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

LOSSES = {
    "NaN": lambda y, y_pred: tf.reduce_sum(y * y_pred) / tf.reduce_sum(y),
    "Infinity": lambda y, y_pred: 3e38 * tf.reduce_sum(y_pred),
    "numbers": "mse",
}
parser = argparse.ArgumentParser()
parser.add_argument("--loss", choices=LOSSES)
loss = LOSSES[parser.parse_args().loss]

model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
model.compile(keras.optimizers.SGD(1.0), loss)
dt.fit(model, np.ones((8, 1), "float32"), np.zeros((8, 1), "float32"), batch_size=8)
