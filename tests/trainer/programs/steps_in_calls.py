# SPDX-License-Identifier: Apache-2.0
"""Counts the calls that training takes, and holds against each other what must be alike; prints its findings as JSON.

Runs by hand, under the default strategy.
"""

import json
import time

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.engines import engine, synchronous
from dtjob_trainer.loops import control

STEPS, EPOCHS, BATCH = 40, 3, 8
N = STEPS * BATCH - 3
random = np.random.default_rng(3)
x = random.normal(size=(N, 5)).astype("float32")
y = (x @ random.normal(size=(5, 1))).astype("float32")
calls, waits, loops = [], [], set()
run = synchronous.SynchronousEngine._run
usual_seconds = getattr(engine, "CALL_SECONDS", None)


def counting(self, kind, source, work):
    waited = source.waited
    made = run(self, kind, source, work)
    waits.append(source.waited - waited)
    calls.append((kind, made[1] if isinstance(made, tuple) else len(work)))
    if kind == "train":
        loops.add(any("While" in operation.type for operation in self.traced(source).graph.get_operations()))
    return made


def patient(seconds):
    """A loaded machine must cut no call short."""
    control.AGREE_SECONDS = synchronous.CALL_SECONDS = seconds


synchronous.SynchronousEngine._run = counting


class EachBatch(keras.callbacks.Callback):
    """Sees every batch."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(batch)


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        return x[index * BATCH : (index + 1) * BATCH], y[index * BATCH : (index + 1) * BATCH]


def compiled(*extra, **arguments):
    keras.utils.set_random_seed(1)
    hidden = keras.layers.Dense(4, "tanh")
    model = keras.Sequential([keras.Input((5,)), hidden, *extra, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"], **arguments)
    return model


def examples(context):
    rows = context.shuffled(N)
    return tf.data.Dataset.from_tensor_slices((x[rows], y[rows]))


def trained(*data, callbacks=(), **arguments):
    """Weights and losses of a training, and its calls; each kind of them as (calls, steps)."""
    calls.clear()
    model = compiled()
    history = dt.fit(model, *data, epochs=EPOCHS, shuffle=False, callbacks=list(callbacks), **arguments).history
    counted = {kind: [steps for each, steps in calls if each == kind] for kind in ("train", "evaluate")}
    return [w.tolist() for w in model.get_weights()], history, counted


batched = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
KINDS = {
    "arrays": lambda: ((x, y), {"batch_size": BATCH}),
    "dataset": lambda: ((batched,), {}),
    "of unknown length": lambda: ((batched.filter(lambda *_: True),), {}),
    "unlike epochs": lambda: ((batched.filter(lambda *_: True),), {"steps_per_epoch": STEPS}),
    "py": lambda: ((Batches(),), {}),
    "function": lambda: ((examples,), {"batch_size": BATCH}),
    "class weights": lambda: ((batched,), {"class_weight": {0: 1.0}}),
}
COMPARED = ("arrays", "of unknown length")
"""Of which every step is seen too. The steps of the others are made as theirs."""
found = {"calls": {}, "alike": {}}
patient(1e6)
for name, make in KINDS.items():
    data, arguments = make()
    weights, history, counted = trained(*data, validation_data=(x, y), **arguments)
    found["calls"][name] = counted
    if name not in COMPARED:
        continue
    each, data, arguments = EachBatch(), *make()
    watched = trained(*data, callbacks=[each], validation_data=(x, y), **arguments)
    found["alike"][name] = watched[:2] == (weights, history) and each.seen == list(range(STEPS)) * EPOCHS

found["loops"] = {}
for name, steps, callbacks in (("unseen", 1, []), ("seen", 1, [EachBatch()]), ("seen together", 4, [EachBatch()])):
    loops.clear()
    dt.fit(compiled(steps_per_execution=steps), x, y, batch_size=BATCH, callbacks=callbacks)
    found["loops"][name] = sorted(loops), [callback.seen for callback in callbacks]

patient(usual_seconds)


def slow(number, *parts):
    """Quick at first, and then slow."""

    def wait(number):
        time.sleep(0.15 * (number >= STEPS // 2))
        return np.float32(0.0)

    nothing = tf.ensure_shape(tf.numpy_function(wait, [number], tf.float32), [])
    return parts[0] + nothing, *parts[1:]


calls.clear()
slower = batched.take(STEPS // 2 + 8).enumerate()
slower = slower.map(lambda number, parts: slow(number, *parts))
dt.fit(compiled(), slower, epochs=1)
found["slow"] = [steps for _, steps in calls]
found["waits"] = sum(waits[-len(calls) :])
together = EachBatch()
dt.fit(compiled(steps_per_execution=4), slower, epochs=1, callbacks=[together])
found["slow together"] = together.seen


patient(1e6)
found["xla"] = []
for fit, quiet in ((keras.Model.fit, {"verbose": 0}), (dt.fit, {})):
    model = compiled(keras.layers.BatchNormalization(), keras.layers.Dropout(0.3), jit_compile=True)
    history = fit(model, batched, epochs=EPOCHS, shuffle=False, validation_data=(x, y), **quiet)
    found["xla"].append((history.history, [w.tolist() for w in model.get_weights()]))


class InPython(keras.layers.Layer):
    """Which XLA cannot compile."""

    def call(self, rows):
        return tf.ensure_shape(tf.numpy_function(lambda rows: rows, [rows], tf.float32), rows.shape)


found["refused"] = {}
for jit in (True, False, "auto"):
    try:
        dt.fit(compiled(InPython(trainable=False, name="python"), jit_compile=jit), x, y, batch_size=BATCH, epochs=1)
        found["refused"][str(jit)] = False
    except tf.errors.OpError as error:
        found["refused"][str(jit)] = "XLA" in str(error) or "compil" in str(error)
print("found", json.dumps(found))
