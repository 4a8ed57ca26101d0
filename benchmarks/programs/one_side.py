# SPDX-License-Identifier: Apache-2.0
"""One side of `steps_per_second`: one_side.py SIDE MODEL KIND STRATEGY POLICY EPOCHS FOLDER.

The chief trains an epoch for each line that it reads from FOLDER/go, and writes its seconds to FOLDER/told, both FIFOs.
SIDE: dtjob (dt.fit), job (Model.fit in a job), hand (a hand-written tf.distribute loop) or keras (Model.fit alone).
With -jit it is compiled by XLA.
"""

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import keras
import tensorflow as tf
from workloads import WORKLOADS, arrays, dataset, loss, model

side, name, kind, strategy_name, policy, epochs, folder = sys.argv[1:]
keras.config.set_dtype_policy(policy)
side, _, jit = side.partition("-")
workload, epochs = WORKLOADS[name], int(epochs)
config = json.loads(os.environ.get("TF_CONFIG", "{}"))
task, roles = config.get("task", {}), config.get("cluster", {})
index = task.get("index", 0) + (task.get("type") == "worker" and "chief" in roles)


class Turns(keras.callbacks.Callback):
    """Waits for each epoch's turn and tells what it took; of a group, its chief alone."""

    def __init__(self):
        super().__init__()
        self.go = (Path(folder) / "go").open() if index == 0 else None
        self.told = (Path(folder) / "told").open("w", buffering=1) if index == 0 else None

    def on_epoch_begin(self, epoch, logs=None):
        if self.go is not None:
            self.go.readline()
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        if self.told is not None:
            print(time.perf_counter() - self.began, file=self.told)


class EachBatch(keras.callbacks.Callback):
    """Is told the metrics after each batch, as a progress bar or a log of its own is."""

    def on_train_batch_end(self, batch, logs=None):
        assert len(logs) == 1 + len(metrics())


def metrics():
    """Those of each side. If a callback sees each batch, there are five."""
    top = [keras.metrics.SparseTopKCategoricalAccuracy(k, name=f"top-{k}") for k in (2, 3, 4, 5)]
    return ["accuracy", *(top if kind == "callback" else [])]


def callbacks():
    return [Turns(), *([EachBatch()] if kind == "callback" else [])]


def data():
    """x and the arguments beside it, as `fit` has them."""
    if kind in ("arrays", "callback"):
        x, y = arrays(workload)
        return x, {"y": y, "batch_size": workload.batch}
    return dataset(workload, kind), {}


def strategy():
    if strategy_name == "OneDevice":
        return tf.distribute.OneDeviceStrategy("/gpu:0" if tf.config.list_physical_devices("GPU") else "/cpu:0")
    if strategy_name == "Mirrored":
        return tf.distribute.MirroredStrategy()
    if strategy_name == "MultiWorkerMirrored":
        return tf.distribute.MultiWorkerMirroredStrategy()
    return tf.distribute.get_strategy()


def by_dtjob():
    import dtjob_trainer as dt

    network = model(name)
    network.compile("adam", loss(), metrics=metrics(), jit_compile=bool(jit))
    x, others = data()
    dt.fit(network, x, epochs=epochs, callbacks=callbacks(), **others)


def by_keras():
    scope = strategy().scope() if strategy_name != "Default" else contextlib.nullcontext()
    with scope:
        network = model(name)
        network.compile("adam", loss(), metrics=metrics(), jit_compile=bool(jit))
        x, others = data()
        network.fit(x, epochs=epochs, callbacks=callbacks(), verbose=0, **others)


def by_hand():
    """After TensorFlow's guide to custom loops, with its fastest form: the iterator inside the function."""
    chosen = strategy()
    with chosen.scope():
        network = model(name)
        optimizer = keras.optimizers.Adam()
        if policy == "mixed_float16":  # as `compile` does
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        optimizer.build(network.trainable_variables)
        accuracy, mean = keras.metrics.SparseCategoricalAccuracy(), keras.metrics.Mean()
        per_example = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)

    def batches(context):
        if kind == "arrays":
            x, y = arrays(workload)
            made = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=0)
            made = made.batch(workload.batch, drop_remainder=True).prefetch(2)
        else:
            made = dataset(workload, kind)
        size = workload.batch // context.num_input_pipelines
        low = context.input_pipeline_id * size
        # endless, as in the guide: of an end TensorFlow would have all tasks agree at every step
        made = made.repeat()
        return made if size == workload.batch else made.map(lambda a, b: (a[low : low + size], b[low : low + size]))

    @tf.function(jit_compile=bool(jit))
    def compiled(images, classes):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(per_example(classes, answers := network(images, training=True))) / workload.batch
            scaled = optimizer.scale_loss(value)
        gradients = tape.gradient(scaled, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))
        accuracy.update_state(classes, answers)
        mean.update_state(value)
        return value

    replica = compiled if jit else compiled.python_function

    @tf.function
    def train_step(iterator):
        return chosen.reduce(tf.distribute.ReduceOp.SUM, chosen.run(replica, args=next(iterator)), axis=None)

    turns, iterator = Turns(), iter(chosen.distribute_datasets_from_function(batches))
    for epoch in range(epochs):
        turns.on_epoch_begin(epoch)
        accuracy.reset_state()
        mean.reset_state()
        for _ in range(workload.steps):
            train_step(iterator)
        float(mean.result()), float(accuracy.result())
        turns.on_epoch_end(epoch)


{"dtjob": by_dtjob, "job": by_keras, "hand": by_hand, "keras": by_keras}[side]()
if side == "hand":
    os._exit(0)  # the shutdown barrier is no part of the training
