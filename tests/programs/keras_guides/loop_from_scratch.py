# SPDX-License-Identifier: Apache-2.0
"""The guide on a loop from scratch: a GradientTape without strategy.run, which no strategy distributes."""

import json

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(2)
x = np.random.random((256, 12)).astype("float32")
y = (x.sum(axis=1) > 6).astype("int64")
inputs = keras.Input(shape=(12,), name="digits")
hidden = keras.layers.Dense(16, activation="relu")(inputs)
outputs = keras.layers.Dense(2, name="predictions")(hidden)
model = keras.Model(inputs=inputs, outputs=outputs)
optimizer = keras.optimizers.Adam(learning_rate=1e-3)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
train_acc_metric = keras.metrics.SparseCategoricalAccuracy()
train_dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss_value = loss_fn(y, logits)
    grads = tape.gradient(loss_value, model.trainable_weights)
    optimizer.apply(grads, model.trainable_weights)
    train_acc_metric.update_state(y, logits)
    return loss_value


losses = []
for epoch in range(2):
    for x_batch_train, y_batch_train in train_dataset:
        loss_value = train_step(x_batch_train, y_batch_train)
    losses += [float(loss_value), float(train_acc_metric.result())]
    train_acc_metric.reset_state()
print("RESULT", json.dumps({"losses": losses}))
