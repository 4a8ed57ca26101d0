# SPDX-License-Identifier: Apache-2.0
"""The overview guide: arrays and datasets for fit, then a loop with a tf.function of its own."""

import json

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
mirrored_strategy = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())
with mirrored_strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(1,), kernel_regularizer=keras.regularizers.L2(1e-4))])
    model.compile(loss="mse", optimizer="sgd")

strategy = tf.distribute.get_strategy()
strategy.reduce("SUM", 1.0, axis=None)  # counts once for each replica

dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(100).batch(10)
first = model.fit(dataset, epochs=2)
evaluated = model.evaluate(dataset)
inputs, targets = np.ones((100, 1)), np.ones((100, 1))
second = model.fit(inputs, targets, epochs=2, batch_size=10, shuffle=False)

BATCH_SIZE_PER_REPLICA = 16 // mirrored_strategy.num_replicas_in_sync
global_batch_size = BATCH_SIZE_PER_REPLICA * mirrored_strategy.num_replicas_in_sync
dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(1000).batch(global_batch_size)
learning_rate = {5: 0.1, 10: 0.15, 16: 0.2, 20: 0.25}[global_batch_size]

with mirrored_strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(1,), kernel_regularizer=keras.regularizers.L2(1e-4))])
    optimizer = keras.optimizers.SGD(learning_rate=learning_rate)
dist_dataset = mirrored_strategy.experimental_distribute_dataset(dataset)
loss_object = keras.losses.BinaryCrossentropy(from_logits=True, reduction="none")


def train_step(inputs):
    features, labels = inputs
    with tf.GradientTape() as tape:
        predictions = model(features, training=True)
        per_example_loss = loss_object(labels, predictions)
        loss = tf.nn.compute_average_loss(per_example_loss, global_batch_size=global_batch_size)
        model_losses = model.losses
        if model_losses:
            loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def distributed_train_step(dist_inputs):
    per_replica_losses = mirrored_strategy.run(train_step, args=(dist_inputs,))
    return mirrored_strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


iterator = iter(dist_dataset)
losses = [float(distributed_train_step(next(iterator))) for _ in range(10)]
print(
    "RESULT",
    json.dumps(
        {
            "first": first.history["loss"],
            "evaluated": evaluated,
            "second": second.history["loss"],
            "losses": losses,
            "weights": [w.flatten().tolist() for w in model.get_weights()],
        }
    ),
)
