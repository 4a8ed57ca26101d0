# SPDX-License-Identifier: Apache-2.0
"""Trains a small network that hangs once in the life of a job, in the task and the way that a test names."""

import argparse
import os
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--hang", choices=["data", "unknown", "collective"], help="unknown: data of unknown length")
parser.add_argument("--task", help="who hangs")
parser.add_argument("--epoch", type=int, default=2, help="in which that is")
parser.add_argument("--marks", type=Path, default=Path(), help="directory for what is noted for the job's life")
parser.add_argument("--slow", type=float, default=0.0, help="seconds of all that takes long and is no stall")
parser.add_argument("--step-seconds", type=float, default=0.0, help="that each 16 examples take")
options = parser.parse_args()
TASK = f"{os.environ['DTJOB_ROLE']}-{os.environ['DTJOB_INDEX']}"

digits = np.load(Path(__file__).parents[3] / "examples" / "digits.npz")
images = (digits["images"] / 16.0).astype("float32")
x, y, xv, yv = images[:512], digits["target"][:512], images[-100:], digits["target"][-100:]


def once(name: str) -> bool:
    """Whether this is the first time in the life of the job."""
    try:
        (options.marks / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def read_from_a_server_that_is_gone() -> None:
    while True:
        time.sleep(1)


def wait_for_the_chiefs_file() -> None:
    while not Path("of-the-chief").exists():
        time.sleep(1)


def hangs_once(epoch: int) -> bool:
    here = options.hang in ("data", "unknown") and options.task == TASK and options.epoch == epoch
    return here and once("hung")


def data(context):
    """This shard's examples, from Python."""
    rows, epoch = context.shuffled(len(x)), context.epoch
    if epoch == 0:
        time.sleep(options.slow)

    def examples():
        for number, row in enumerate(rows):
            if number == len(rows) // 2 and hangs_once(epoch):
                read_from_a_server_that_is_gone()
            if number % 16 == 0:
                time.sleep(options.step_seconds)
            yield x[row], y[row]

    signature = tf.TensorSpec((8, 8), tf.float32), tf.TensorSpec((), tf.int64)
    found = tf.data.Dataset.from_generator(examples, output_signature=signature)
    return found if options.hang == "unknown" else found.apply(tf.data.experimental.assert_cardinality(len(rows)))


def held_out(context):
    """Validation's examples."""
    time.sleep(options.slow)
    return tf.data.Dataset.from_tensor_slices((xv, yv)).shard(context.shards, context.shard)


class Disturbs(keras.callbacks.Callback):
    """Has one task wait for a file of the chief's, which comes to write it only in collectives with that task; and
    takes long for its state."""

    def on_epoch_begin(self, epoch, logs=None):
        if options.hang == "collective" and options.epoch == epoch and options.task == TASK and once("hung"):
            wait_for_the_chiefs_file()

    def get_state(self):
        time.sleep(options.slow)
        return {}

    def set_state(self, state):
        time.sleep(options.slow)


class Compiles(keras.layers.Layer):
    """Takes long to be traced."""

    def call(self, inputs):
        time.sleep(options.slow / 4)
        return inputs


model = keras.Sequential(
    [keras.Input((8, 8)), keras.layers.Flatten(), Compiles(), keras.layers.Dense(10, activation="softmax")]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
callbacks = [Disturbs()] if options.slow or options.hang == "collective" else []
dt.fit(model, data, batch_size=64, epochs=options.epochs, validation_data=held_out, callbacks=callbacks)
