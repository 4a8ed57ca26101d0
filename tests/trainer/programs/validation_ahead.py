# SPDX-License-Identifier: Apache-2.0
"""Under ParameterServer: how far the chief runs ahead of the workers with batches of validation."""

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

BATCHES, WORKERS = 80, 2


class Slow(keras.Sequential):
    """Each step of its validation takes a while."""

    def test_step(self, data):
        x, _ = data
        product = tf.while_loop(lambda i, _: i < 300, lambda i, m: (i + 1, tf.linalg.matmul(m, m) / 200.0), (0, many))[
            1
        ]
        done.assign_add(1)
        return {"loss": tf.reduce_mean(x) + 0.0 * tf.reduce_mean(product)}


ahead = []


def validation(context):
    def examples():
        for number in range(BATCHES):
            ahead.append(number - int(done.numpy()))
            yield np.zeros(4, np.float32), np.zeros(1, np.float32)

    signature = tf.TensorSpec((4,), tf.float32), tf.TensorSpec((1,), tf.float32)
    return tf.data.Dataset.from_generator(examples, output_signature=signature)


model = Slow([keras.Input((4,)), keras.layers.Dense(1)])
done = tf.Variable(0, trainable=False)
many = tf.ones((200, 200))
model.compile("sgd", "mse")
x, y = np.zeros((4, 4), np.float32), np.zeros((4, 1), np.float32)
dt.fit(model, x, y, batch_size=1, validation_data=validation, validation_steps=BATCHES)
assert int(done.numpy()) == BATCHES
print(f"ahead by {max(ahead)}")
assert max(ahead) <= 4 * WORKERS + 4, ahead  # and a few that the Dataset has at hand
