# SPDX-License-Identifier: Apache-2.0
"""Epochs, steps in one call, validation and callbacks, as one device has them."""

from pathlib import Path

import h5py
import numpy as np
import tensorflow as tf
from one_device_setup import (
    LEGACY,
    VALID,
    N,
    adam,
    batched,
    case,
    compiled,
    dense,
    keras,
    layers,
    optimizers,
    options,
    sequences,
    train,
    x,
    xv,
    y,
    yv,
)

import dtjob_trainer as dt


@case
def several_steps_in_one_call():
    model = compiled(dense(), adam(), "mse", metrics=["mae"], steps_per_execution=3)
    seen = []
    calls = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: seen.append(("begin", batch)),
        on_train_batch_end=lambda batch, logs: seen.append(("end", batch, logs["loss"], logs["mae"])),
    )
    found = train(model, batched(x, y, batch=8), callbacks=[calls], validation_data=(xv, yv))
    found["seen"] = [event for event in seen if event[0] == "begin" or event[1] < 7]
    rows = tf.data.Dataset.from_tensor_slices((sequences, y, np.arange(N) % 7 % 6 + 1))
    dataset = rows.map(lambda row, target, length: (row[:length], target)).padded_batch(4, ([None, 3], [1]))
    recurrent = keras.Sequential([keras.Input((None, 3)), layers.GRU(4), layers.Dense(1)])
    model = compiled(recurrent, optimizers.SGD(0.1), "mse", steps_per_execution=3)
    return found | {"padded": train(model, dataset, epochs=2, validation_data=dataset)}


@case
def epochs_of_a_number_of_steps():
    dataset, endless = batched(x, y), batched(x, y).repeat()
    parts = batched(xv, yv, batch=7)
    unknown = parts.filter(lambda *_: True)
    beyond = 2 if LEGACY else 9  # after a first validation that ran out of data, tf_keras validates no more
    found = {}
    for name, data, steps, held_out, validation_steps in (
        ("arrays", (x, y), 2, (xv, yv), beyond),
        ("endless", (endless,), 5, parts, 2),
        ("dataset", (dataset,), 2, parts, 9),
        ("of unknown length", (endless,), 5, unknown, beyond),
        ("function", (x, y), 2, (xv, yv) if options.reference else validation_function, 1),
        ("function to its end", (x, y), 2, (xv, yv) if options.reference else validation_function, beyond),
    ):
        if LEGACY and name == "dataset":  # where tf_keras stops at the data's end
            continue
        model = compiled(dense(), "sgd", "mse")
        found[name] = train(
            model, *data, steps_per_epoch=steps, epochs=4, validation_data=held_out, validation_steps=validation_steps
        )
    return found


def validation_function(context):
    rows = context.shuffled(VALID)
    return tf.data.Dataset.from_tensor_slices((xv[rows], yv[rows]))


class Recorder(keras.callbacks.Callback):
    """Notes every call that it gets, with its number and logs."""

    def __init__(self):
        super().__init__()
        self.calls = []


def recording(hook):
    def note(self, *arguments, logs=None):
        given = [part for part in (*arguments, logs) if part is not None]
        self.calls.append([hook, *(sorted(part.items()) if isinstance(part, dict) else part for part in given)])

    return note


for hook in ("epoch", "train", "test", "train_batch", "test_batch"):
    for end in ("begin", "end"):
        setattr(Recorder, f"on_{hook}_{end}", recording(f"{hook}_{end}"))


def written(folder):
    """What callbacks wrote: the names of files, the numbers in them."""
    found = {"files": sorted(path.name for path in folder.glob("*.*"))}
    rows = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()]
    found["csv"] = [rows[0], *([float(number) for number in row] for row in rows[1:])]
    with h5py.File(folder / "best.weights.h5") as file:
        arrays = []
        file.visititems(lambda name, item: arrays.append(np.array(item)) if isinstance(item, h5py.Dataset) else None)
    found["best"] = arrays
    scalars = []
    for path in sorted(folder.glob("board/*/events*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.tag.startswith(("epoch_", "batch_")):
                    scalars.append([path.parent.name, value.tag, event.step, float(tf.make_ndarray(value.tensor))])
    found["scalars"] = sorted(scalars)
    return found


@case
def callbacks():
    folder = Path(options.out).parent / "written"
    recorder = Recorder()
    every = [
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9 if epoch < 3 else 0.2),
        keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=0.5),
        keras.callbacks.EarlyStopping("val_loss", patience=2, min_delta=0.1, restore_best_weights=True),
        keras.callbacks.ModelCheckpoint(str(folder / "model-{epoch}.keras")),
        keras.callbacks.ModelCheckpoint(
            str(folder / "best.weights.h5"), "loss", save_best_only=True, save_weights_only=True, save_freq=3
        ),
        keras.callbacks.CSVLogger(str(folder / "log.csv")),
        keras.callbacks.TensorBoard(str(folder / "board"), histogram_freq=1, update_freq="batch"),
        keras.callbacks.TerminateOnNaN(),
        recorder,
    ]
    if dt.is_chief():
        folder.mkdir()
    model = compiled(dense(), optimizers.SGD(0.01), "mse", metrics=["mae"])
    found = train(model, x, y, epochs=9, callbacks=every, validation_data=(xv, yv))
    return found | {"calls": recorder.calls} | (written(folder) if dt.is_chief() else {})


@case
def stop_within_an_epoch():
    broken = x.copy()
    broken[30] = np.nan
    recorder = Recorder()
    model = compiled(dense(), "sgd", "mse")
    found = train(model, broken, y, epochs=5, callbacks=[keras.callbacks.TerminateOnNaN(), recorder])
    return found | {"calls": recorder.calls}
