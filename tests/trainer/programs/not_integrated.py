# SPDX-License-Identifier: Apache-2.0
"""With `program.integration: None`: TensorFlow's own strategy, or the job's that `dt.strategy()` makes.

`own`: a loop under a strategy of the program's own. `fit` and `train`: dt.fit and dt.train under dt.strategy(). `late`:
dt.fit without dt.strategy(). Prints what each comes to.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

how = sys.argv[1]
assert not tf.distribute.has_strategy()
if how == "own":
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
elif how == "late":
    strategy = tf.distribute.get_strategy()
else:
    strategy = dt.strategy()
    assert dt.strategy() is strategy is tf.distribute.get_strategy()

x = np.arange(64, dtype="float32").reshape(16, 4) / 64
y = x.sum(axis=1, keepdims=True)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(8, drop_remainder=True)

with strategy.scope():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse")


def step_fn(batch):
    inputs, targets = batch
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(model(inputs, training=True) - targets)) / 8
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


if how == "train":
    dt.train(step_fn, dataset, variables=[model, optimizer], total_steps=4)
elif how == "own":
    run = tf.function(lambda batch: strategy.run(step_fn, (batch,)))
    for _ in range(2):
        for batch in strategy.experimental_distribute_dataset(dataset):
            run(batch)
else:
    dt.fit(model, dataset, epochs=2, shuffle=False, verbose=0)
print("weights", *np.concatenate([weight.ravel() for weight in model.get_weights()]), flush=True)
