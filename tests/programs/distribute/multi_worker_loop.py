# SPDX-License-Identifier: Apache-2.0
"""A loop of its own for several workers: distribute_datasets_from_function, strategy.run, CheckpointManager."""

import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(4)
strategy = tf.distribute.MultiWorkerMirroredStrategy() if "TF_CONFIG" in os.environ else tf.distribute.get_strategy()
global_batch_size = 64


def dataset_fn(input_context):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(640, 8)).astype("float32")
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype("int64")
    batch_size = input_context.get_per_replica_batch_size(global_batch_size)
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    dataset = dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return dataset.repeat().batch(batch_size)


with strategy.scope():
    multi_worker_model = keras.Sequential(
        [keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)]
    )
    multi_worker_dataset = strategy.distribute_datasets_from_function(dataset_fn)
    optimizer = keras.optimizers.Adam(learning_rate=0.01)
    train_accuracy = keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")


@tf.function
def train_step(iterator):
    def step_fn(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            predictions = multi_worker_model(x, training=True)
            per_batch_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")(
                y, predictions
            )
            loss = tf.nn.compute_average_loss(per_batch_loss, global_batch_size=global_batch_size)
        grads = tape.gradient(loss, multi_worker_model.trainable_variables)
        optimizer.apply_gradients(zip(grads, multi_worker_model.trainable_variables))
        train_accuracy.update_state(y, predictions)
        return loss

    per_replica_losses = strategy.run(step_fn, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


num_epochs, num_steps_per_epoch = 3, 10
epoch = tf.Variable(initial_value=tf.constant(0, dtype=tf.dtypes.int64), name="epoch")
step_in_epoch = tf.Variable(initial_value=tf.constant(0, dtype=tf.dtypes.int64), name="step_in_epoch")
checkpoint_dir = os.path.join(tempfile.mkdtemp(), "ckpt")
checkpoint = tf.train.Checkpoint(model=multi_worker_model, epoch=epoch, step_in_epoch=step_in_epoch)
checkpoint_manager = tf.train.CheckpointManager(checkpoint, directory=checkpoint_dir, max_to_keep=1)
latest_checkpoint = tf.train.latest_checkpoint(checkpoint_dir)
if latest_checkpoint:
    checkpoint.restore(latest_checkpoint)

losses, accuracies = [], []
while epoch.numpy() < num_epochs:
    iterator = iter(multi_worker_dataset)
    total_loss, num_batches = 0.0, 0
    while step_in_epoch.numpy() < num_steps_per_epoch:
        total_loss += train_step(iterator)
        num_batches += 1
        step_in_epoch.assign_add(1)
    losses.append(float(total_loss / num_batches))
    accuracies.append(float(train_accuracy.result()))
    print("Epoch: %d, accuracy: %f, train_loss: %f." % (epoch.numpy(), accuracies[-1], losses[-1]))
    train_accuracy.reset_state()
    checkpoint_manager.save()
    epoch.assign_add(1)
    step_in_epoch.assign(0)
print("RESULT", json.dumps({"loss": losses, "accuracy": accuracies}))
