# SPDX-License-Identifier: Apache-2.0
"""Every argument of Keras's `Model.fit`, as one device has it. docs/reference/fit.md shows each case's docstring."""

import contextlib
import io
import itertools
import re

import numpy as np
import tensorflow as tf
from one_device_loop import Recorder
from one_device_setup import (
    BATCH,
    LEGACY,
    SOME_CLASSES,
    N,
    batched,
    case,
    classes,
    compiled,
    dense,
    keras,
    layers,
    metrics,
    optimizers,
    options,
    weights,
    wv,
    x,
    xv,
    y,
    yv,
)

import dtjob_trainer as dt

HELD_OUT = {"validation_data": (xv, yv)}
ORDERED = {"shuffle": False, "batch_size": BATCH}


def uses(*arguments):
    """Marks a case that shows these arguments."""
    return case


class Notes(keras.callbacks.Callback):
    """Notes the epochs that it is told of, with the names in their logs."""

    def __init__(self):
        super().__init__()
        self.noted = []

    def on_epoch_begin(self, epoch, logs=None):
        self.noted.append(["begin", epoch])

    def on_epoch_end(self, epoch, logs=None):
        self.noted.append(["end", epoch, *sorted(logs)])

    def on_test_end(self, logs=None):
        self.noted.append(["tested", *sorted(logs)])

    def on_train_end(self, logs=None):
        self.noted.append(["all", *sorted(logs or {})])


def fit(model, *positions, **arguments):
    """What `Model.fit`, or `dt.fit` with the same arguments, came to."""
    if options.reference:
        history = model.fit(*positions, **({} if len(positions) > 4 else {"verbose": 0}) | arguments)
    else:
        history = dt.fit(model, *positions, **arguments)
    assert history is model.history
    logs = {name: [np.asarray(value).tolist() for value in values] for name, values in history.history.items()}
    steps = history.params["steps"] or 0
    return {"history": logs, "epochs": history.epoch, "steps": steps, "weights": model.get_weights()}


def linear(**arguments):
    return compiled(dense(), "sgd", "mse", metrics=["mae"], **arguments)


def classifier():
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return compiled(dense(units=3), "sgd", loss, weighted_metrics=[metrics.SparseCategoricalAccuracy("accuracy")])


@uses("x", "y")
def arguments_by_position():
    """all arguments by their positions"""
    notes = Notes()
    data = x, y, BATCH, 5, 0, [notes], 0.0, (xv, yv), False, None, weights, 1, 2, 2, 7, 2
    return fit(linear(), *data) | {"notes": notes.noted}


class Added(layers.Layer):
    """A loss of its own."""

    def build(self, shape):
        self.scale = self.add_weight(shape=(5,), initializer="ones", name="scale")

    def call(self, inputs):
        scaled = inputs * tf.convert_to_tensor(self.scale)
        self.add_loss(tf.reduce_mean(tf.square(scaled)))
        return scaled


def self_taught():
    return compiled(keras.Sequential([keras.Input((5,)), Added()]), "sgd", None)


@uses("y")
def argument_y_left_out():
    """left out, where the model adds its own losses"""
    return fit(self_taught(), x, epochs=2, **ORDERED)


@uses("batch_size")
def argument_batch_size():
    """of all replicas together"""
    return {
        "given": fit(linear(), x, y, batch_size=10, shuffle=False, epochs=2),
        "32": fit(linear(), x[:32], y[:32], shuffle=False),
    }


@uses("batch_size")
def argument_batch_size_beside_batches():
    """of a Dataset, which has its own"""
    return fit(linear(), batched(x, y), batch_size=None if LEGACY and options.reference else 7)


@uses("epochs")
def argument_epochs():
    """a number"""
    return fit(linear(), x, y, epochs=3, **ORDERED)


@uses("epochs")
def argument_epochs_of_none():
    """0, or not more than initial_epoch"""
    notes = Notes()
    found = {"0": fit(linear(), x, y, epochs=0, callbacks=[notes], **ORDERED)}
    averaged = compiled(dense(), optimizers.SGD(0.1, use_ema=True), "mse")  # whose averages there are none of yet
    found["averaged"] = fit(averaged, x, y, epochs=0, **ORDERED)
    return found | {"begin": fit(linear(), x, y, epochs=1, initial_epoch=2, **ORDERED), "notes": notes.noted}


def printed(text):
    """The last line of each epoch, with its numbers left out, and the first line of all."""
    lines = [re.sub(r"\x1b\[\d+m", "", line).rstrip() for line in re.split(r"[\n\r\x08]+", text)]
    lines = [line for line in lines if line and not line.startswith(("time=", "W0", "WARNING"))]
    ends = [line for line, after in itertools.pairwise([*lines, "Epoch"]) if after.startswith("Epoch")]
    return [re.sub(r"\d[\d.]*(e[+-]\d+)?(us|ms|s)?\b", "#", line) for line in ends], lines[0] if lines else ""


@uses("verbose")
def argument_verbose():
    """0, 1 (moving in a terminal alone), 2: as Keras prints it, at the chief"""
    found = {}
    for verbose in (0, 1, 2):
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            found[verbose] = fit(linear(), x, y, epochs=2, verbose=verbose, **ORDERED, **HELD_OUT)
        found[verbose]["printed"] = printed(told.getvalue())
        assert found[verbose]["printed"][0] if verbose and dt.is_chief() else found[verbose]["printed"] == ([], "")
    return found


@uses("verbose")
def argument_verbose_auto():
    """ "auto": a line of dtjob's own after each epoch"""
    return fit(linear(), x, y, verbose=0 if options.reference else "auto", **ORDERED)


@uses("callbacks")
def argument_callbacks():
    """a list, or one, of those of epochs"""
    notes, rates = Notes(), keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))
    found = fit(linear(), x, y, epochs=3, callbacks=[notes, [rates]], **ORDERED, **HELD_OUT)
    alone = fit(linear(), x, y, callbacks=rates, **ORDERED)
    return found | {"notes": notes.noted, "alone": alone}


@uses("callbacks")
def argument_callbacks_of_batches():
    """with methods for each batch"""
    recorder = Recorder()
    found = fit(linear(), x, y, epochs=2, callbacks=[recorder], **ORDERED, **HELD_OUT)
    return found | {"calls": recorder.calls}


@uses("callbacks")
def argument_callbacks_in_a_callback_list():
    """a CallbackList, with a History and params of its own"""
    notes, model = Notes(), linear()
    given = {"epochs": 2, "steps": -(-N // BATCH), "verbose": 0}
    every = keras.callbacks.CallbackList([notes], add_history=True, model=model, **given)
    found = fit(model, x, y, epochs=2, callbacks=every, **ORDERED, **HELD_OUT)
    assert model.history in every.callbacks
    return found | {"notes": notes.noted, "params": notes.params}


@uses("validation_split")
def argument_validation_split():
    """the last rows of arrays, before they are shuffled"""
    return fit(linear(), x, y, epochs=2, validation_split=0.25, sample_weight=weights, **ORDERED)


@uses("validation_split")
def argument_validation_split_of_sparse_tensors():
    """of sparse tensors"""
    sparse = np.where(x > 0.0, x, 0.0)
    if not options.reference:  # Keras's own split of sparse tensors fails
        sparse = tf.sparse.from_dense(sparse)
    model = keras.Sequential([keras.Input((5,), sparse=not options.reference), layers.Dense(1)])
    return fit(compiled(model, "sgd", "mse"), sparse, y, validation_split=0.25, **ORDERED)


@uses("validation_split")
def argument_validation_split_of_a_dataset():
    """of a Dataset"""
    return fit(linear(), batched(x, y), validation_split=0.25)


@uses("validation_split")
def argument_validation_split_beside_validation_data():
    """beside validation_data"""
    return fit(linear(), x, y, validation_split=0.25, **ORDERED, **HELD_OUT)


@uses("validation_data")
def argument_validation_data():
    """x, (x, y) or (x, y, weights); a Dataset"""
    found = {"pair": fit(linear(), x, y, epochs=2, **ORDERED, **HELD_OUT)}
    found["weighted"] = fit(linear(), x, y, validation_data=(xv, yv, wv), **ORDERED)
    found["alone"] = fit(self_taught(), x, validation_data=(xv,) if LEGACY else xv, **ORDERED)
    return found | {"dataset": fit(linear(), x, y, validation_data=batched(xv, yv, batch=7), **ORDERED)}


@uses("shuffle")
def argument_shuffle():
    """False; True in one batch (else each order is another)"""
    found = {"one batch": fit(linear(), x, y, shuffle=True, batch_size=N, epochs=2)}
    return found | {"no": fit(linear(), x, y, shuffle=False, batch_size=BATCH, epochs=2)}


@uses("shuffle")
def argument_shuffle_batch():
    """ "batch": each batch keeps its rows"""
    if LEGACY and options.reference:  # which shuffles x and y apart from each other
        return fit(linear(), x, y, shuffle=True, batch_size=N, epochs=2)
    return fit(linear(), x, y, shuffle="batch", batch_size=N if LEGACY else BATCH, epochs=2)


@uses("class_weight")
def argument_class_weight():
    """class to weight"""
    return fit(classifier(), x, classes, class_weight=SOME_CLASSES, epochs=2, **ORDERED)


@uses("class_weight")
def argument_class_weight_beside_sample_weight():
    """beside sample_weight"""
    return fit(classifier(), x, classes, class_weight=SOME_CLASSES, sample_weight=weights, **ORDERED)


@uses("sample_weight")
def argument_sample_weight():
    """a weight for each example"""
    return fit(classifier(), x, classes, sample_weight=weights, epochs=2, **ORDERED)


@uses("sample_weight")
def argument_sample_weight_without_y():
    """without y"""
    return fit(self_taught(), x, sample_weight=weights, **ORDERED)


@uses("initial_epoch")
def argument_initial_epoch():
    """the number (from 0) of the first epoch"""
    notes, rates = Notes(), keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))
    found = fit(linear(), x, y, epochs=5, initial_epoch=3, callbacks=[rates, notes], **ORDERED, **HELD_OUT)
    return found | {"notes": notes.noted}


@uses("steps_per_epoch")
def argument_steps_per_epoch():
    """of arrays, with batch_size and without, and of a Dataset"""
    found = {"arrays": fit(linear(), x, y, epochs=2, steps_per_epoch=2, **ORDERED)}
    if not LEGACY:
        found["cut"] = fit(linear(), x, y, epochs=2, steps_per_epoch=5, shuffle=False)
    return found | {"dataset": fit(linear(), batched(x, y).repeat(), epochs=2, steps_per_epoch=5)}


@uses("validation_steps")
def argument_validation_steps():
    """the first batches"""
    return fit(linear(), x, y, epochs=2, validation_steps=1, **ORDERED, **HELD_OUT)


@uses("validation_steps", "validation_batch_size", "validation_freq")
def argument_validation_steps_without_validation():
    """without validation_data"""
    return fit(linear(), x, y, validation_steps=2, validation_batch_size=7, validation_freq=2, **ORDERED)


@uses("validation_batch_size")
def argument_validation_batch_size():
    """of arrays"""
    return fit(linear(), x, y, validation_batch_size=7, validation_steps=2, **ORDERED, **HELD_OUT)


@uses("validation_freq")
def argument_validation_freq():
    """a number of epochs, or a list of their numbers (from 1)"""
    notes = Notes()
    found = {"2": fit(linear(), x, y, epochs=5, validation_freq=2, callbacks=notes, **ORDERED, **HELD_OUT)}
    found["list"] = fit(linear(), x, y, epochs=5, validation_freq=[1, 4], initial_epoch=2, **ORDERED, **HELD_OUT)
    return found | {"notes": notes.noted}


@uses("max_queue_size", "workers", "use_multiprocessing")
def argument_workers():
    """beside arrays"""
    return fit(linear(), x, y, workers=2, use_multiprocessing=True, max_queue_size=5, **ORDERED)
