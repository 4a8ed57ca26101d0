# SPDX-License-Identifier: Apache-2.0
"""Tables in which rows are looked up: once for all rows, of the batch, both in one table, and each row once."""

import numpy as np
import tensorflow as tf
from one_device_setup import CLIPPED, LEGACY, N, batched, case, compiled, keras, layers, optimizers, train, y

LENGTH, WORDS = 6, 9
words = np.random.default_rng(11).integers(0, WORDS, (N, LENGTH))
PLACES = np.abs(np.arange(LENGTH)[:, None] - np.arange(LENGTH)).ravel()
"""Distances, of which some are there several times."""
OPTIMIZERS = {
    "adam": ("Adam", {}),
    "rmsprop": ("RMSprop", {}),
    "adagrad": ("Adagrad", {}),
    "clipped": ("Adam", CLIPPED),
}


class Tokens(keras.layers.Layer):
    """As models of text have it: a table of tokens, and one of places that is looked up once for all rows."""

    def __init__(self, *, one_table=False, open_length=False):
        super().__init__()
        self.tokens = layers.Embedding(WORDS, 3)
        self.places = self.tokens if one_table else layers.Embedding(WORDS, 3)
        self.open_length = open_length

    def call(self, ids):
        length = tf.shape(ids)[1] if self.open_length else LENGTH
        return self.tokens(ids) + self.places(tf.range(length))


class Distances(keras.layers.Layer):
    """A bias for each pair of places, looked up in a table of distances."""

    def build(self, shape):
        self.table = self.add_weight(name="table", shape=(LENGTH, 1), initializer="ones")

    def call(self, ids):
        pairs = tf.reshape(tf.gather(tf.convert_to_tensor(self.table), PLACES), (1, LENGTH, LENGTH))
        return tf.reduce_sum(pairs * tf.cast(ids, tf.float32)[:, None, :], -1, keepdims=True)


class DifferentWords(keras.layers.Layer):
    """Looks up each word of the batch once, however often it is there."""

    def build(self, shape):
        self.table = self.add_weight(name="table", shape=(WORDS, 3), initializer="ones")

    def call(self, ids):
        found, places = tf.unique(tf.reshape(ids, (-1,)))
        rows = tf.gather(tf.convert_to_tensor(self.table), found)
        return tf.reshape(tf.gather(rows, places), (-1, LENGTH, 3))


def trained(name, layer, **arguments):
    kind, settings = OPTIMIZERS[name]
    stack = [keras.Input((LENGTH,), dtype="int32"), layer, layers.Activation("tanh"), layers.Flatten(), layers.Dense(1)]
    model = compiled(keras.Sequential(stack), getattr(optimizers, kind)(0.02, **settings), "mse", **arguments)
    return train(model, words, y)


@case
def tables():
    return {
        "places": trained("adam", Tokens()),
        "one table": trained("rmsprop", Tokens(one_table=True)),
        "each once": trained("clipped", DifferentWords()),
    }


@case
def every_optimizer_of_a_table():
    """Words are looked up several times in a batch, and with numbers from the end of the table; some are never."""
    kinds = ("SGD", "RMSprop", "Adagrad", "Adadelta", "Adam", "AdamW", "Adamax", "Ftrl")
    kinds += () if LEGACY else ("Nadam", "Lion", "Lamb")  # tf_keras's Nadam counts how often a step was traced
    found = {}
    for kind in kinds:
        settings = {"weight_decay": 0.01} if kind in ("AdamW", "SGD") else CLIPPED
        stack = [keras.Input((LENGTH,), dtype="int32"), layers.Embedding(2 * WORDS + 1, 3)]
        stack += [layers.Flatten(), layers.Dense(1)]
        model = compiled(keras.Sequential(stack), getattr(optimizers, kind)(0.02, **settings), "mse")
        found[kind] = train(model, words if LEGACY else np.where(words % 2, words, -words), y)
    return found


@case
def every_table():
    found = {}
    for name in OPTIMIZERS:
        found[f"{name} places"] = trained(name, Tokens())
        found[f"{name} one table"] = trained(name, Tokens(one_table=True))
    for name in ("adam", "clipped"):
        found[f"{name} distances"] = trained(name, Distances())
        found[f"{name} each once"] = trained(name, DifferentWords())
        found[f"{name} open length"] = trained(name, Tokens(open_length=True), steps_per_execution=2)
    return found


class Stepping(keras.Sequential):
    """With a step of its own."""

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(inputs, training=True) - targets) ** 2)
        found = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, found), found, strict=True))
        return {"error": loss}


@case
def tables_of_an_own_step():
    stack = [keras.Input((LENGTH,), dtype="int32"), Tokens(), layers.Flatten(), layers.Dense(1)]
    return train(compiled(Stepping(stack), optimizers.Adam(0.02), None), batched(words, y))
