# SPDX-License-Identifier: Apache-2.0
"""Trains on handwritten digits for longer than anybody waits, and notes each step as it is done.

recovery.py LOOP DIRECTORY EVERY: one model, data and batch, in three loops that save every so many steps and go on from
there when they are started again. In DIRECTORY, which all tasks see, the chief appends a line to `steps`: an id of its
process, the step, and the machine's monotonic clock.

- dtjob: dt.fit, under whatever strategy the job has.
- keras: Model.fit with BackupAndRestore under MultiWorkerMirrored, as Keras' guide has it.
- coordinator: ParameterServer's ClusterCoordinator and a CheckpointManager, as TensorFlow's guide has it.

The last two are what one writes for TFJob: they wait until all names resolve, and where a peer is lost they end at once
(an ordinary exit waits up to 35 s for it), with an exit code that TFJob takes for one to be tried again.
"""

import argparse
import json
import os
import socket
import sys
import time
from pathlib import Path

import numpy as np

BATCH, STEPS = 64, 20  # examples of a step, steps of an epoch
ENDLESS = 1_000_000
TRY_AGAIN = 138  # at least 128; TFJob's documentation leaves this one to the user
DIGITS = Path("examples/digits.npz")  # of the trainer's image


class StepLog:
    """Appends a line for each step to a file. Where the process is no chief it does nothing."""

    def __init__(self, directory, chief):
        self._file = (Path(directory) / "steps").open("a", buffering=1) if chief else None
        self._process = f"{socket.gethostname()}-{time.monotonic_ns()}"

    def note(self, step):
        if self._file:
            self._file.write(f"{self._process} {step} {time.monotonic()}\n")


def data():
    digits = np.load(DIGITS)
    rows = BATCH * STEPS
    return (digits["images"][:rows] / 16.0)[..., None].astype("float32"), digits["target"][:rows].astype("int64")


def network():
    return tf_keras.Sequential(
        [
            tf_keras.Input((8, 8, 1)),
            tf_keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            tf_keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            tf_keras.layers.MaxPooling2D(),
            tf_keras.layers.Flatten(),
            tf_keras.layers.Dense(64, activation="relu"),
            tf_keras.layers.Dense(10),
        ]
    )


def compiled():
    model = network()
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def each_batch(log):
    """A callback for each step: its number is the optimizer's, which a restart restores."""

    class Noting(tf_keras.callbacks.Callback):
        step = None

        def on_train_batch_end(self, batch, logs=None):
            self.step = int(self.model.optimizer.iterations.numpy()) if self.step is None else self.step + 1
            log.note(self.step)

    return Noting()


def each_epoch(log):
    """The same for each epoch, as under ParameterServer batches end in no order."""

    class Noting(tf_keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            log.note((epoch + 1) * STEPS)

    return Noting()


def by_dtjob(directory, every):
    """How often is saved stands in the manifest."""
    log = StepLog(directory, dt.is_chief())
    noting = each_epoch if os.environ["DTJOB_STRATEGY"] == "ParameterServer" else each_batch
    dt.fit(compiled(), *data(), batch_size=BATCH, epochs=ENDLESS, verbose=0, callbacks=[noting(log)])


def by_keras(directory, every):
    task = wait_for_names()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = compiled()
    batches = tf.data.Dataset.from_tensor_slices(data()).shuffle(BATCH * STEPS).batch(BATCH).repeat()
    sharded = tf.data.Options()
    sharded.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    backup = tf_keras.callbacks.BackupAndRestore(f"{directory}/backup", save_freq=every)
    noting = each_batch(StepLog(directory, task["type"] == "chief"))
    batches = batches.with_options(sharded)
    model.fit(batches, epochs=ENDLESS, steps_per_epoch=STEPS, verbose=0, callbacks=[backup, noting])


def by_coordinator(directory, every):
    wait_for_names()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type != "chief":
        spec, task = resolver.cluster_spec(), (resolver.task_type, resolver.task_id)
        tf.distribute.Server(spec, job_name=task[0], task_index=task[1], protocol="grpc").join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model, optimizer = network(), tf_keras.optimizers.Adam()
        optimizer.build(model.trainable_variables)
        done = tf.Variable(0, dtype=tf.int64)
        losses = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, done=done)
    manager = tf.train.CheckpointManager(checkpoint, f"{directory}/backup", max_to_keep=3)
    checkpoint.restore(manager.latest_checkpoint)

    def batches():
        return tf.data.Dataset.from_tensor_slices(data()).shuffle(BATCH * STEPS).batch(BATCH).repeat()

    @tf.function
    def step(iterator):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(losses(y, model(x, training=True))) / BATCH
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

        strategy.run(replica, args=next(iterator))

    iterator = iter(coordinator.create_per_worker_dataset(batches))
    log = StepLog(directory, chief=True)
    while True:
        for _ in range(STEPS):
            coordinator.schedule(step, args=(iterator,))
        coordinator.join()
        done.assign_add(STEPS)
        log.note(int(done.numpy()))
        if done.numpy() % every == 0:
            manager.save()


def wait_for_names():
    """Wait until the name of each peer resolves; this process' task of TF_CONFIG."""
    config = json.loads(os.environ["TF_CONFIG"])
    for host in [host for hosts in config["cluster"].values() for host in hosts]:
        name, _, port = host.rpartition(":")
        while True:
            try:
                socket.getaddrinfo(name, port)
                break
            except socket.gaierror:
                time.sleep(0.2)
    return config["task"]


LOOPS = {"dtjob": by_dtjob, "keras": by_keras, "coordinator": by_coordinator}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loop", choices=LOOPS)
    parser.add_argument("directory")
    parser.add_argument("every", type=int)
    options = parser.parse_args()
    import tensorflow as tf
    import tf_keras

    if options.loop == "dtjob":
        import dtjob_trainer as dt

        by_dtjob(options.directory, options.every)
        sys.exit()
    try:
        LOOPS[options.loop](options.directory, options.every)
    except tf.errors.OpError as error:
        print(f"a peer is lost: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
        os._exit(TRY_AGAIN)
