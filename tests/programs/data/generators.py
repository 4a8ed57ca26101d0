# SPDX-License-Identifier: Apache-2.0
"""Datasets from a generator and through numpy_function, with a model as a class."""

import json

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(24)
rng = np.random.default_rng(16)
x = rng.normal(size=(120, 5)).astype("float32")
y = (x[:, 0] > x[:, 1]).astype("int64")


class MyModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.d1 = keras.layers.Dense(10, activation="tanh")
        self.d2 = keras.layers.Dense(2)

    def call(self, inputs):
        return self.d2(self.d1(inputs))


def samples():
    yield from zip(x, y)


def make():
    model = MyModel()
    model.compile(
        optimizer=keras.optimizers.SGD(0.1, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


dataset = tf.data.Dataset.from_generator(
    samples, output_signature=(tf.TensorSpec((5,), tf.float32), tf.TensorSpec((), tf.int64))
).batch(20)
model = make()
first = model.fit(dataset, epochs=2)


def normalise(row, label):
    row = tf.numpy_function(lambda r: (r / 2).astype("float32"), [row], tf.float32)
    row.set_shape((5,))
    return row, label


second = model.fit(tf.data.Dataset.from_tensor_slices((x, y)).map(normalise).batch(20), epochs=1)


print("RESULT", json.dumps({"first": first.history, "second": second.history}))
