# SPDX-License-Identifier: Apache-2.0
"""A loop of its own: experimental_distribute_dataset, training and test steps, Checkpoint, iterators in three ways."""

import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(9)
rng = np.random.default_rng(0)
train_images = rng.random((256, 8, 8, 1)).astype("float32")
train_labels = (train_images[:, :4].mean(axis=(1, 2, 3)) > 0.5).astype("int64")
test_images, test_labels = train_images[200:], train_labels[200:]

strategy = tf.distribute.MirroredStrategy()
print("Number of devices: {}".format(strategy.num_replicas_in_sync))
GLOBAL_BATCH_SIZE = 32
EPOCHS = 3
train_dataset = tf.data.Dataset.from_tensor_slices((train_images, train_labels)).batch(GLOBAL_BATCH_SIZE)
test_dataset = tf.data.Dataset.from_tensor_slices((test_images, test_labels)).batch(GLOBAL_BATCH_SIZE)
train_dist_dataset = strategy.experimental_distribute_dataset(train_dataset)
test_dist_dataset = strategy.experimental_distribute_dataset(test_dataset)


def create_model():
    return keras.Sequential(
        [
            keras.layers.Conv2D(4, 3, activation="relu", kernel_regularizer=keras.regularizers.L2(1e-4)),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(2),
        ]
    )


checkpoint_prefix = os.path.join(tempfile.mkdtemp(), "ckpt")

with strategy.scope():
    loss_object = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def compute_loss(labels, predictions, model_losses):
        per_example_loss = loss_object(labels, predictions)
        loss = tf.nn.compute_average_loss(per_example_loss, global_batch_size=GLOBAL_BATCH_SIZE)
        if model_losses:
            loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
        return loss

    test_loss = keras.metrics.Mean(name="test_loss")
    train_accuracy = keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
    test_accuracy = keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")
    model = create_model()
    optimizer = keras.optimizers.Adam(learning_rate=0.001)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)


def train_step(inputs):
    images, labels = inputs
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = compute_loss(labels, predictions, model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_accuracy.update_state(labels, predictions)
    return loss


def test_step(inputs):
    images, labels = inputs
    predictions = model(images, training=False)
    t_loss = loss_object(labels, predictions)
    test_loss.update_state(t_loss)
    test_accuracy.update_state(labels, predictions)


@tf.function
def distributed_train_step(dataset_inputs):
    per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


@tf.function
def distributed_test_step(dataset_inputs):
    return strategy.run(test_step, args=(dataset_inputs,))


found = []
for epoch in range(EPOCHS):
    total_loss, num_batches = 0.0, 0
    for x in train_dist_dataset:
        total_loss += distributed_train_step(x)
        num_batches += 1
    for x in test_dist_dataset:
        distributed_test_step(x)
    if epoch % 2 == 0:
        checkpoint.save(checkpoint_prefix)
    found.append(
        [
            float(total_loss / num_batches),
            float(train_accuracy.result()),
            float(test_loss.result()),
            float(test_accuracy.result()),
        ]
    )
    print("Epoch {}, Loss: {}, Accuracy: {}, Test Loss: {}, Test Accuracy: {}".format(epoch + 1, *found[-1]))
    test_loss.reset_state()
    train_accuracy.reset_state()
    test_accuracy.reset_state()

# an iterator by hand
train_iter = iter(train_dist_dataset)
total = 0.0
for _ in range(4):
    total += distributed_train_step(next(train_iter))
found.append([float(total / 4)])


# the loop inside a tf.function
@tf.function
def distributed_train_epoch(dataset):
    total_loss, num_batches = 0.0, 0
    for x in dataset:
        per_replica_losses = strategy.run(train_step, args=(x,))
        total_loss += strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)
        num_batches += 1
    return total_loss / tf.cast(num_batches, dtype=tf.float32)


found.append([float(distributed_train_epoch(train_dist_dataset))])

eval_accuracy = keras.metrics.SparseCategoricalAccuracy(name="eval_accuracy")
new_model = create_model()
new_optimizer = keras.optimizers.Adam()
new_checkpoint = tf.train.Checkpoint(optimizer=new_optimizer, model=new_model)
new_checkpoint.restore(tf.train.latest_checkpoint(os.path.dirname(checkpoint_prefix)))


@tf.function
def eval_step(images, labels):
    eval_accuracy(labels, new_model(images, training=False))


for images, labels in test_dataset:
    eval_step(images, labels)
found.append([float(eval_accuracy.result())])
print("RESULT", json.dumps({"found": found}))
