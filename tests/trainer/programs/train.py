# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with Dropout and BatchNormalization on digits, as the tests tell it to."""

import argparse
import importlib
import os
import time
from pathlib import Path

import keras as keras_3
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.checkpoint import writer
from dtjob_trainer.models import values
from dtjob_trainer.process import runtime

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--examples", type=int, default=1000)
parser.add_argument("--held-out", type=int, default=300)
parser.add_argument(
    "--data",
    choices=["arrays", "function", "dataset", "random", "unknown", "filtered", "py", "generator"],
    default="arrays",
)
parser.add_argument("--plain", action="store_true", help="no layer whose result depends on how the batch is cut")
parser.add_argument("--weight-decay", type=float)
parser.add_argument("--callbacks", action="store_true", help="callbacks with a state of their own")
parser.add_argument("--hold", type=int, help="wait at the begin of this epoch until the file --gate is there")
parser.add_argument("--gate")
parser.add_argument("--chief-holds", action="store_true", help="and the others wait for it in their next collective")
parser.add_argument("--slow-state", type=float, default=0.0, help="seconds that a callback takes for its state")
parser.add_argument("--slow-write", type=float, default=0.0, help="seconds that a checkpoint takes to be written")
parser.add_argument("--step-log", type=Path, help="the chief adds a line for each step: process, step, seconds")
parser.add_argument("--stop-at", type=int, help="stop after this step of the first epoch")
parser.add_argument("--wait-in-validation", type=Path, help="for a stop, or until this file is there")
parser.add_argument("--accumulate", action="store_true", help="over three steps, clipped, with class weights")
parser.add_argument("--averages", choices=["validation", "epoch"], help="of the weights: who sees them as such")
parser.add_argument("--steps-per-execution", type=int, default=1)
parser.add_argument("--jit", action="store_true")
parser.add_argument("--piece-bytes", type=int, help="of variables on parameter servers, as they pass through the chief")
parser.add_argument("--split", action="store_true", help="with arguments of Model.fit: the third epoch is the first")
options = parser.parse_args()
if options.piece_bytes:
    values.PIECE_BYTES = options.piece_bytes
FIRST = 2 if options.split else 0
keras = importlib.import_module(options.package)

digits = np.load(Path(__file__).parents[3] / "examples" / "digits.npz")
images = (digits["images"] / 16.0)[..., None].astype("float32")
x, y = images[: options.examples], digits["target"][: options.examples]
xv, yv = images[-options.held_out :], digits["target"][-options.held_out :]


class Hold(keras.callbacks.Callback):
    """Lets a test act at a known step. Needs at an epoch's end what it notes at its begin."""

    def on_epoch_begin(self, epoch, logs=None):
        self.began = epoch
        trains = runtime.current().progress.status.get("state") == "training"  # else a restart resumes within the epoch
        trains = trains and (dt.is_chief() or not options.chief_holds)
        while epoch == options.hold and trains and not Path(options.gate).exists():
            time.sleep(0.01)

    def on_epoch_end(self, epoch, logs=None):
        assert self.began == epoch
        assert len(self.model.history.history.get("loss", [])) == epoch - FIRST

    def get_state(self):
        time.sleep(options.slow_state)
        return {}

    def set_state(self, state):
        pass


class Sums(keras.callbacks.Callback):
    """Adds up the weights of all epochs, in the same arrays."""

    def on_train_begin(self, logs=None):
        self.sums = [np.zeros(weight.shape) for weight in self.model.get_weights()]

    def on_epoch_end(self, epoch, logs=None):
        for total, weight in zip(self.sums, self.model.get_weights(), strict=True):
            total += weight

    def get_state(self):
        return {"sums": self.sums}

    def set_state(self, state):
        self.sums = state["sums"]


class StepLog(keras.callbacks.Callback):
    """Writes down each step that was done, and when."""

    step = 0

    def on_train_batch_end(self, batch, logs=None):
        step = runtime.current().progress.status["restoredStep"] if not self.step else self.step
        self.step = step + 1
        if dt.is_chief():
            with options.step_log.open("a") as log:
                log.write(f"{os.getpid()} {self.step} {time.monotonic()}\n")

    get_state, set_state = Hold.get_state, Hold.set_state


class Stop(keras.callbacks.Callback):
    """Stops training within an epoch."""

    def on_train_batch_end(self, batch, logs=None):
        self.model.stop_training |= batch + 1 == options.stop_at

    get_state, set_state = Hold.get_state, Hold.set_state


def slow_write(*arguments):
    time.sleep(options.slow_write)
    write(*arguments)


def shard(context):
    """This shard's examples, sharded before they are touched."""
    rows = context.shuffled(len(x))
    return tf.data.Dataset.from_tensor_slices(rows).map(lambda row: (tf.gather(x, row), tf.gather(y, row)))


def held_out(context):
    """Validation's examples; in their middle it waits until this process or a peer is told to stop."""
    rows = context.shuffled(len(xv))
    gate = options.wait_in_validation

    def examples():
        for number, row in enumerate(rows):
            if number == len(rows) // 2 and not gate.exists():
                gate.with_suffix(f".{os.getpid()}").touch()
                while not (gate.exists() or runtime.current().shutdown.requested):
                    time.sleep(0.01)
                gate.touch()
            yield xv[row], yv[row]

    signature = tf.TensorSpec((8, 8, 1), tf.float32), tf.TensorSpec((), tf.int64)
    return tf.data.Dataset.from_generator(examples, output_signature=signature)


extra = [] if options.plain else [keras.layers.BatchNormalization(), keras.layers.Dropout(0.3)]
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        *extra,
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax", kernel_regularizer=keras.regularizers.L2(1e-4)),
    ]
)
optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
if not options.plain:
    optimizer = keras.optimizers.Adam(0.005, weight_decay=options.weight_decay)
if options.accumulate:
    optimizer = keras.optimizers.Adam(0.005, gradient_accumulation_steps=3, global_clipnorm=1.0)
if options.averages:
    optimizer = keras.optimizers.Adam(0.005, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=7)
loss, steps = "sparse_categorical_crossentropy", options.steps_per_execution
jit = {"jit_compile": True} if options.jit else {}
model.compile(optimizer, loss, metrics=["accuracy"], steps_per_execution=steps, **jit)
callbacks = [Hold()] if options.gate or options.slow_state else []
callbacks += [StepLog()] if options.step_log else []
callbacks += [Stop()] if options.stop_at else []
if options.averages:
    callbacks += [keras.callbacks.SwapEMAWeights(swap_on_epoch=options.averages == "epoch")]
if options.slow_write:
    write, writer.write = writer.write, slow_write
if options.callbacks:
    callbacks += [
        Sums(),
        keras.callbacks.EarlyStopping("val_loss", patience=50, restore_best_weights=True),
        keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=0.3),
        keras.callbacks.CSVLogger("log.csv"),
        keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True),
        keras.callbacks.TensorBoard("board", update_freq="batch", write_steps_per_second=True),
    ]


def noisy(image):
    return image + tf.random.normal(image.shape, stddev=0.1)


class Batches(keras_3.utils.PyDataset):
    """Shuffles its examples itself at the end of each epoch."""

    order = np.arange(len(x))

    def __len__(self):
        return -(-len(x) // options.batch_size)

    def __getitem__(self, index):
        rows = self.order[index * options.batch_size : (index + 1) * options.batch_size]
        return x[rows], y[rows]

    def on_epoch_end(self):
        np.random.shuffle(self.order)


def generated():
    while True:
        for rows in np.array_split(np.random.permutation(len(x)), steps_of_epoch):
            yield x[rows], y[rows]


steps_of_epoch = -(-len(x) // options.batch_size)
whole = tf.data.Dataset.from_tensor_slices((x, y))
data = {
    "arrays": {"x": x, "y": y, "batch_size": options.batch_size},
    "function": {"x": shard, "batch_size": options.batch_size},
    "dataset": {"x": whole.batch(options.batch_size)},
    "unknown": {  # a function of data whose length nobody knows, in their own order
        "x": lambda _: whole.filter(lambda *_: True),
        "batch_size": options.batch_size,
        "steps_per_epoch": steps_of_epoch,
    },
    "filtered": {"x": whole.batch(options.batch_size).filter(lambda *_: True)},
    "py": {"x": Batches(workers=2)},
    "generator": {"x": generated(), "steps_per_epoch": steps_of_epoch},
    "random": {"x": whole.map(lambda image, digit: (noisy(image), digit)).batch(options.batch_size)},
}[options.data]
if options.accumulate:
    data["class_weight"] = {0: 2.0, 1: 0.5}
validation = held_out if options.wait_in_validation else (xv, yv)
held = {"validation_data": validation}
if options.split:
    held = {"validation_split": 0.25, "validation_freq": [3, 5, 6], "validation_batch_size": 50}
    held |= {"initial_epoch": FIRST, "verbose": 2}
history = dt.fit(model, **data, **held, epochs=options.epochs, callbacks=callbacks, save="model.keras")
validations = 3 if options.split else 1 if options.stop_at else options.epochs
assert len(history.history["val_accuracy"]) == validations
assert history.epoch == list(range(FIRST, FIRST + len(history.history["loss"])))
if dt.is_chief():
    print(f"history {history.history}")
    print(f"accuracy {history.history['val_accuracy'][-1]:.4f}")
