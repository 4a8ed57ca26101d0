# SPDX-License-Identifier: Apache-2.0
"""A tf_keras model of layers, one of which makes and calls others where it is called to train, and not before."""

import numpy as np
import tf_keras

import dtjob_trainer as dt


class Block(tf_keras.layers.Layer):
    """Flips images and adds a layer's output, while it trains."""

    def __init__(self):
        super().__init__()
        self.flip, self.extra = tf_keras.layers.RandomFlip("horizontal"), tf_keras.layers.Dense(3)

    def call(self, x, training=None):
        if training:
            x = self.flip(x)
            x = x + self.extra(x)
        return x


image = tf_keras.Input((4, 4, 3))
model = tf_keras.Model(image, tf_keras.layers.Dense(1)(tf_keras.layers.Flatten()(Block()(image))))
model.compile("adam", "mse")
dt.fit(model, np.ones((16, 4, 4, 3), "float32"), np.ones((16, 1), "float32"), batch_size=8, verbose=0)
print("variables", len(model.trainable_variables), flush=True)
