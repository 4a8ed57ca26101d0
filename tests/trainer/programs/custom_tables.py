# SPDX-License-Identifier: Apache-2.0
"""A custom loop with tables of embeddings, whose optimizers square the slices of a gradient: prints sums of squares.

Tables are looked up for each row, once for all rows (from a constant and from a variable), both in one table, and each
word of the batch once. `--hidden` looks one up in a function of the program's own, where nobody sees how.
"""

import argparse
import importlib

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
parser.add_argument("--optimizer", default="Adam")
parser.add_argument("--data", choices=["arrays", "distributed"], default="arrays")
parser.add_argument("--hidden", action="store_true")
options = parser.parse_args()
keras = importlib.import_module(options.package)

ROWS, LENGTH, WORDS, WIDTH, BATCH = 48, 6, 9, 3, 8
words = np.random.default_rng(0).integers(0, WORDS, (ROWS, LENGTH)).astype("int32")
targets = np.random.default_rng(1).normal(size=(ROWS,)).astype("float32")


class Tables(keras.layers.Layer):
    """Words and their places."""

    def build(self, shape):
        named = {"words": WORDS, "places": LENGTH, "kept": LENGTH, "shared": WORDS, "once": WORDS}
        values = keras.initializers.RandomNormal(seed=5)
        for name, size in named.items():
            setattr(self, name, self.add_weight(name=name, shape=(size, WIDTH), initializer=values))
        places = tf.constant_initializer(list(range(LENGTH)))
        self.ids = self.add_weight(name="ids", shape=(LENGTH,), dtype="int32", initializer=places, trainable=False)

    def call(self, ids):
        found, where = tf.unique(tf.reshape(ids, (-1,)))
        once = tf.reshape(tf.gather(rows_of(self.once, found), where), (-1, LENGTH, WIDTH))
        fixed = rows_of(self.places, tf.range(LENGTH)) + rows_of(self.kept, tf.convert_to_tensor(self.ids))
        shared = rows_of(self.shared, ids) + rows_of(self.shared, tf.range(LENGTH))
        return tf.tanh(rows_of(self.words, ids) + fixed + shared + once)


def rows_of(table, ids):
    return tf.gather(tf.convert_to_tensor(table), ids)


model = keras.Sequential([keras.Input((LENGTH,), dtype="int32"), Tables(), keras.layers.Flatten()])
last = keras.layers.Dense(1, kernel_initializer=keras.initializers.RandomNormal(seed=6))
model.add(last)
optimizer = getattr(keras.optimizers, options.optimizer)(0.02)
optimizer.build(model.trainable_variables)
answer = tf.function(model, autograph=False) if options.hidden else model


def step_fn(batch):
    ids, y = batch
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((answer(ids)[:, 0] - y) ** 2) / BATCH
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


data, size = (words, targets), BATCH
if options.data == "distributed":
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(BATCH).repeat()
    data, size = dt.strategy().experimental_distribute_dataset(dataset), None
dt.train(step_fn, data, batch_size=size, variables=[model, optimizer], total_steps=12)
if dt.is_chief():
    for weight in model.trainable_variables:
        print(f"squares {weight.name.rpartition('/')[2]} {float(np.sum(np.square(weight.numpy()))):.7f}")
