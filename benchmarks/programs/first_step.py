# SPDX-License-Identifier: Apache-2.0
"""Trains by Model.fit (`--plain`, or `--model-fit` in a job) or by dt.fit.

It notes in `--marks` what it took to come to the first step, and then waits.

A mark is the wall clock and this process' processor seconds. The wait ends once the file `--go-on` is there.
"""

import argparse
import importlib
import json
import os
import time
from pathlib import Path


def mark():
    return [time.time(), time.process_time()]


MARKS = {"program": mark()}

parser = argparse.ArgumentParser()
parser.add_argument("--plain", choices=["Default", "OneDevice", "Mirrored", "CentralStorage"])
parser.add_argument("--model-fit", action="store_true")
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
parser.add_argument("--marks", type=Path, required=True)
parser.add_argument("--go-on", type=Path, required=True)
parser.add_argument("--checkpoints", help="of the plain program: where it saves, and what it resumes from")
options = parser.parse_args()

keras = importlib.import_module(options.package)
from digits_model import BATCH, data, loss, model  # noqa: E402

MARKS["imported"] = mark()


def note_and_wait():
    MARKS["stepped"] = mark()
    unfinished = options.marks.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(MARKS))
    unfinished.rename(options.marks)
    while not options.go_on.exists():
        time.sleep(0.01)


class Marks(keras.callbacks.Callback):
    """The first step as Model.fit's callbacks see it."""

    def on_train_batch_begin(self, batch, logs=None):
        MARKS.setdefault("begun", mark())

    def on_train_batch_end(self, batch, logs=None):
        if "stepped" not in MARKS:
            note_and_wait()


class MarksOfEpoch(keras.callbacks.Callback):
    """The same of an epoch of one step: under ParameterServer there are no batches to be told of."""

    def on_epoch_begin(self, epoch, logs=None):
        MARKS.setdefault("begun", mark())

    def on_epoch_end(self, epoch, logs=None):
        if "stepped" not in MARKS:
            note_and_wait()


def by_keras(x, y):
    """The plain program: nothing of dtjob."""
    callbacks = [Marks()]
    if options.checkpoints:
        callbacks.append(keras.callbacks.BackupAndRestore(options.checkpoints, delete_checkpoint=False))
    network = model(keras)
    network.compile("adam", loss(keras), metrics=["accuracy"])
    MARKS["fit"] = mark()
    # it may not be killed while it saves: the file would be torn
    network.fit(x, y, batch_size=BATCH, epochs=1 if options.go_on.exists() else 1000, callbacks=callbacks, verbose=0)


def by_dtjob(x, y):
    """The same by dt.fit, or by Model.fit in a job."""
    import dtjob_trainer as dt

    asynchronous = os.environ.get("DTJOB_STRATEGY") == "ParameterServer"
    own = dt.is_chief()
    callback = (MarksOfEpoch if asynchronous else Marks)() if own else Quiet()
    network = model(keras)
    network.compile("adam", loss(keras), metrics=["accuracy"])
    MARKS["fit"] = mark()
    n = BATCH if asynchronous else len(x)
    given = {"batch_size": BATCH, "epochs": 1000, "callbacks": [callback]}
    if options.model_fit:
        network.fit(x[:n], y[:n], verbose=0, **given)
    else:
        dt.fit(network, x[:n], y[:n], **given)


class Quiet(keras.callbacks.Callback):
    """Of the other tasks: what is read for one task's callback is read by all together."""

    def on_train_batch_end(self, batch, logs=None):
        pass


def strategy():
    """The strategy of the plain program, as TensorFlow's guide makes it."""
    import tensorflow as tf

    if options.plain in ("Mirrored", "CentralStorage"):
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    devices = ["/cpu:0", "/cpu:1"]
    match options.plain:
        case "OneDevice":
            return tf.distribute.OneDeviceStrategy("/cpu:0")
        case "Mirrored":
            return tf.distribute.MirroredStrategy(devices)
        case "CentralStorage":
            return tf.distribute.experimental.CentralStorageStrategy(devices)
    return tf.distribute.get_strategy()


images, classes = data()
if options.plain:
    with strategy().scope():
        by_keras(images, classes)
else:
    by_dtjob(images, classes)
