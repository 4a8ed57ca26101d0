# SPDX-License-Identifier: Apache-2.0
"""Trains beside a Keras that lacks a name, or that comes by another way to what dtjob replaces, one after another."""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src.losses import loss as keras_loss

import dtjob_trainer as dt
from dtjob_trainer.errors import FrameworkError

x = np.random.default_rng(0).random((16, 4)).astype(np.float32)
y = x.sum(axis=1)


@contextlib.contextmanager
def without(owner: Any, name: str) -> Iterator[None]:
    home = next((kind for kind in getattr(owner, "__mro__", ()) if name in vars(kind)), owner)
    held = getattr(home, name)
    delattr(home, name)
    try:
        yield
    finally:
        setattr(home, name, held)


@contextlib.contextmanager
def instead(owner: Any, name: str, function: Any) -> Iterator[None]:
    held = getattr(owner, name)
    setattr(owner, name, function)
    try:
        yield
    finally:
        setattr(owner, name, held)


def reduced_by_itself(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
    """A loss as a Keras would have it that reduces without `scale_loss_for_distribution`."""
    return keras.ops.mean(self.call(keras.ops.cast(y_true, "float32"), y_pred))


def summed_by_itself(self: Any, grads: Any, variables: Any, learning_rate: Any) -> None:
    """An optimizer as a Keras would have it that sums without `_all_reduce_sum_gradients`."""
    context = tf.distribute.get_replica_context()
    for total, variable in zip(context.all_reduce("SUM", list(grads)), variables, strict=True):
        variable.assign_sub(learning_rate * total)


reduced = (keras.losses.Loss, "__call__", reduced_by_itself)
summed = (keras.Optimizer, "_backend_update_step", summed_by_itself)
CASES = {
    "no scale": [instead(*reduced), without(keras_loss, "scale_loss_for_distribution")],
    "another scale": [instead(*reduced)],
    "no sum": [instead(*summed), without(keras.Optimizer, "_all_reduce_sum_gradients")],
    "another sum": [instead(*summed)],
    "all names": [],
}
for case, changed in CASES.items():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    try:
        with contextlib.ExitStack() as stack:
            for each in changed:
                stack.enter_context(each)
            dt.fit(model, x, y, batch_size=8, epochs=1)
        print(f"{case}: trained", flush=True)
    except FrameworkError as error:
        print(f"{case}: {error}", flush=True)
