# SPDX-License-Identifier: Apache-2.0
"""A program of its own, without dtjob's trainer: TensorFlow's multi-worker guide on handwritten digits.

For jobs without `program`: the operator gives each pod its TF_CONFIG, and after any failure it starts all of them
again. So the program saves by itself, restores by itself, and ends at once when a peer is lost. The checkpoint volume
may be mounted at the chief (or worker 0) alone: the others get everything from there. It runs alone too.
"""

import argparse
import json
import os
import signal
import socket
import tempfile
import time
import traceback
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

BATCH_SIZE = 48  # of all workers together; what it leaves over of an epoch is dropped


def main(options):
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    wait_for_names(config.get("cluster", {}))
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    # As PID 1 a process ignores SIGTERM unless it asks for it, and TensorFlow's own handler does not end it.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    keras.utils.set_random_seed(0)

    digits = np.load(Path(__file__).with_name("digits.npz"))
    images = (digits["images"] / 16.0)[..., None].astype("float32")
    labels = digits["target"].astype("int64")
    held_out = np.arange(len(images)) % 5 == 0
    x, y = images[~held_out], labels[~held_out]
    xv, yv = images[held_out], labels[held_out]

    with strategy.scope():
        model = keras.Sequential([
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ])
        optimizer = keras.optimizers.Adam(1e-3)
        optimizer.build(model.trainable_variables)  # before the restore, which only fills variables that exist
        step = tf.Variable(0, dtype=tf.int64, trainable=False)

    everything = [*(variable.value for variable in model.variables + optimizer.variables), step]
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    chief = is_chief(config)
    # Saving is collective, so every worker saves; what the others write nobody reads.
    directory = options.checkpoints if chief else tempfile.mkdtemp()
    manager = tf.train.CheckpointManager(checkpoint, directory, max_to_keep=3)
    if chief and manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).assert_consumed()
    broadcast(strategy, everything, chief)
    origin = "restored" if step.numpy() else "a new run"
    say(chief, f"step {step.numpy()}: {origin}, {strategy.num_replicas_in_sync} replicas")

    steps_per_epoch = len(x) // BATCH_SIZE
    share = BATCH_SIZE // strategy.num_replicas_in_sync

    def loss_of(images, labels):
        losses = keras.losses.sparse_categorical_crossentropy(labels, model(images, training=True), from_logits=True)
        return tf.reduce_sum(losses) / (share * strategy.num_replicas_in_sync)  # replicas' gradients are summed

    @tf.function
    def train_step(images, labels):
        def replica(images, labels):
            with tf.GradientTape() as tape:
                loss = loss_of(images, labels)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        return strategy.reduce("SUM", strategy.run(replica, args=(images, labels)), axis=None)

    while step.numpy() < options.epochs * steps_per_epoch:
        epoch, position = divmod(int(step.numpy()), steps_per_epoch)
        # The order depends on the epoch alone, so that a restart goes on with the data that it would have seen.
        order = np.random.default_rng(epoch).permutation(len(x))[: steps_per_epoch * BATCH_SIZE]
        order = order.reshape(steps_per_epoch, BATCH_SIZE)[position:]

        def mine(context, order=order):
            rows = order[:, context.input_pipeline_id :: context.num_input_pipelines].ravel()
            per_replica = share * context.num_replicas_in_sync // context.num_input_pipelines
            return tf.data.Dataset.from_tensor_slices((x[rows], y[rows])).batch(per_replica, drop_remainder=True)

        for images, labels in strategy.distribute_datasets_from_function(mine):
            loss = train_step(images, labels)
            step.assign_add(1)
            if step.numpy() % options.save_every == 0:
                manager.save(checkpoint_number=step)
            if options.slow:
                time.sleep(options.slow)
        say(chief, f"epoch {epoch + 1}/{options.epochs}  step {step.numpy()}  loss {loss:.4f}")
    manager.save(checkpoint_number=step)

    if chief:
        predicted = np.argmax(model(xv), axis=-1)
        say(chief, f"held-out accuracy {np.mean(predicted == yv):.4f}")


def wait_for_names(cluster):
    """Wait until every peer's name resolves: a pod may start before another has its address, and TensorFlow fails."""
    for host in [host for hosts in cluster.values() for host in hosts]:
        name, _, port = host.rpartition(":")
        while True:
            try:
                socket.getaddrinfo(name, port)
                break
            except socket.gaierror:
                time.sleep(0.5)


def is_chief(config):
    """Whether this process writes the checkpoints: the chief, or worker 0 where there is none."""
    task, cluster = config.get("task", {}), config.get("cluster", {})
    return not task or task["type"] == "chief" or ("chief" not in cluster and task["index"] == 0)


def broadcast(strategy, variables, chief):
    """Give each variable the chief's value everywhere: the sum of it and of the others' zeros.

    For floats and signed integers; MultiWorkerMirrored reduces no others. Restoring at the chief alone would train
    different weights in every worker, without an error.
    """
    mine = [variable.read_value() if chief else tf.zeros_like(variable.read_value()) for variable in variables]

    def replica():
        context = tf.distribute.get_replica_context()
        first = context.replica_id_in_sync_group == 0  # a chief with several GPUs has several replicas
        return [context.all_reduce("SUM", value * tf.cast(first, value.dtype)) for value in mine]

    @tf.function
    def sums():
        return [strategy.experimental_local_results(value)[0] for value in strategy.run(replica)]

    for variable, value in zip(variables, sums(), strict=True):
        variable.assign(value)


def say(chief, message):
    if chief:
        print(message, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--checkpoints", default=os.environ.get("CHECKPOINTS", "checkpoints"))
    parser.add_argument("--save-every", type=int, default=50, help="steps")
    parser.add_argument("--slow", type=float, default=0.0, help="seconds to wait after each step")
    try:
        main(parser.parse_args())
    except tf.errors.OpError:  # a peer is lost; an ordinary exit would wait up to 35 s for it
        traceback.print_exc()
        os._exit(1)
