# SPDX-License-Identifier: Apache-2.0
"""The learning rate depends on the number of replicas, as guides have it."""

import keras
import numpy as np

import dtjob_trainer as dt

model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.01 * dt.strategy().num_replicas_in_sync), "mse")
dt.fit(model, np.ones((24, 2), "float32"), np.ones((24, 1), "float32"), batch_size=12, epochs=1)
print("trained by", dt.strategy().num_replicas_in_sync)
