# SPDX-License-Identifier: Apache-2.0
"""Programs that go on after whatever their training was left over: `python3 swallowing.py LOOP TIMES LEAVES`.

LEAVES: the number (from 0) of the call whose error ends the program; -1: none.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

LOOP, TIMES, LEAVES = sys.argv[1], *map(int, sys.argv[2:4])
x = np.random.default_rng(1).normal(size=(64, 4)).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
optimizer = keras.optimizers.SGD(0.001)
optimizer.build(model.trainable_variables)


def step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(batch[0]) - batch[1]))
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
    return loss


def once():
    if LOOP == "fit":
        dt.fit(model, x, y, batch_size=12, epochs=1_000_000, verbose=0)
    else:
        dt.train(step, (x, y), variables=[model, optimizer], total_steps=10_000_000, batch_size=12)


for number in range(TIMES):
    try:
        once()
    except:  # noqa: E722 — as a program may have it
        print("swallowed", type(sys.exc_info()[1]).__name__, flush=True)
        if number == LEAVES:
            raise
