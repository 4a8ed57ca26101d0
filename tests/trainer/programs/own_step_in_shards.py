# SPDX-License-Identifier: Apache-2.0
"""A model with its own train_step under a partitioner: refused before the first step."""

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt


class Own(keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, self.trainable_weights), self.trainable_weights, strict=True)
        )
        return {"loss": loss}


model = Own([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
dt.fit(model, np.zeros((64, 4), np.float32), np.zeros((64, 1), np.float32), batch_size=32)
