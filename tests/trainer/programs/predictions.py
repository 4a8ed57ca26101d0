# SPDX-License-Identifier: Apache-2.0
"""`dt.predict` and `dt.evaluate`: the same numbers as `Model.predict` and `Model.evaluate`, by shares."""

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.errors import DataError
from dtjob_trainer.process import runtime

task = runtime.current().task
index = task.members.index(task.id)
x = np.random.default_rng(0).normal(size=(97, 4)).astype("float32")
named = {"one": x, "two": x[:, :2] * 2}
inputs = {"one": keras.Input((4,), name="one"), "two": keras.Input((2,), name="two")}
joined = keras.layers.concatenate(list(inputs.values()))
model = keras.Model(inputs, {"a": keras.layers.Dense(3)(joined), "b": keras.layers.Dense(1, "relu")(joined)})
model.compile("sgd", "mse")


class Count(keras.callbacks.Callback):
    batches = 0

    def on_predict_batch_end(self, batch: int, logs: object = None) -> None:
        del batch, logs
        self.batches += 1


def check(data: object, batches: int) -> None:
    """All results are those of `Model.predict`, of which this task computed so many batches."""
    counted = Count()
    found = dt.predict(model, data, batch_size=None if isinstance(data, tf.data.Dataset) else 1, callbacks=[counted])
    whole = model.predict(data, verbose=0)
    assert found.keys() == whole.keys()
    for name, array in whole.items():
        assert found[name].shape == array.shape
        assert np.allclose(found[name], array, atol=1e-6)
    assert counted.batches == batches, (counted.batches, batches)


check(named, (49, 48)[index])
check({name: array[:1] for name, array in named.items()}, 1)
check(tf.data.Dataset.from_tensor_slices(named).batch(10), 10)
try:
    dt.predict(model, {name: array[: 50 + index] for name, array in named.items()})
except DataError as error:
    told = str(error)
else:
    told = ""
assert "[50, 51]" in told
if dt.is_chief():
    assert model.predict(named, verbose=0)["a"].shape == (97, 3)  # others are not waited for
y = {"a": np.zeros((97, 3)), "b": np.ones((97, 1))}
assert np.allclose(dt.evaluate(model, named, y, verbose=0), model.evaluate(named, y, verbose=0))
print("predicted", flush=True)
