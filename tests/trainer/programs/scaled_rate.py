# SPDX-License-Identifier: Apache-2.0
"""Trains for so many epochs with a schedule that scale_lr multiplies, and prints the learning rate at the end."""

import sys

import keras
import numpy as np

import dtjob_trainer as dt

schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1000], [0.1, 0.1])
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(schedule), "mse")
x = np.ones((40, 2), "float32")
dt.fit(model, x, x[:, :1], batch_size=12, epochs=int(sys.argv[1]), scale_lr=True)
print(f"rate {float(np.asarray(model.optimizer.learning_rate)):.6g}", flush=True)
