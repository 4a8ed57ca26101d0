# SPDX-License-Identifier: Apache-2.0
"""Calls `train` with what cannot be right, under Mirrored with two replicas, and checks what it answers."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf_keras

import dtjob_trainer as dt

x = np.zeros((12, 3), np.float32)
built = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
optimizer = keras.optimizers.SGD()
optimizer.build(built.trainable_variables)


def step_fn(batch: Any) -> Any:
    return tf.reduce_sum(built(batch))


class Batches(keras.utils.PyDataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return x[4 * index : 4 * index + 4]


def refused(words: list[str], step: Any = step_fn, data: Any = x, variables: Any = built, **options: Any) -> None:
    """`train` must raise a ValueError whose message holds all of `words`."""
    options = {"total_steps": 5, "batch_size": 4, **options}
    refuses(words, lambda: dt.train(step, data, variables=variables, **options))


def refuses(words: list[str], call: Callable[[], Any]) -> None:
    """`call` must raise a ValueError whose message holds all of `words`."""
    message = None
    try:
        call()
    except ValueError as error:
        message = str(error)
    assert message is not None, f"not refused: {words}"
    assert all(word in message for word in words), message


def returns(value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda batch: value(batch)


refused(["step_fn", "function"], step=5)
refused(["total_steps=0"], total_steps=0)
refused(["batch_size=5", "multiple", "2"], batch_size=5)
refused(["12 examples", "smaller batch_size"], batch_size=24)
refused(["lengths"], data=(x, x[:5]))
refused(["scalar", "'loss'"], step=returns(lambda batch: batch))
refused(["scalar", "'a'"], step=returns(lambda batch: {"a": batch}))
refused(["variables/net", "keras.Input"], variables={"net": keras.Sequential([keras.layers.Dense(2)])})
refused(["variables/0", "build(model.trainable_variables)"], variables=[keras.optimizers.Adam()])
refused(["variables/0", "build(model.trainable_variables)"], variables=[tf_keras.optimizers.Adam()])
refused(["variables", "legacy"], variables=tf_keras.optimizers.legacy.Adam())
refused(["variables/1", "str"], variables=[built, "name"])
refused(["variables is empty"], variables=[])


class Shouting(keras.optimizers.SGD):
    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        super().apply(grads, trainable_variables)


shouting = Shouting(gradient_accumulation_steps=2)
shouting.build(built.trainable_variables)
refused(["variables", shouting.name, "apply()", "leave the override out"], variables=[built, shouting])
dataset = tf.data.Dataset.from_tensor_slices(x)
refused(["data", "drop_remainder=True"], data=dataset.batch(4), batch_size=None)
refused(["data", "multiple of 2"], data=dataset.batch(3, drop_remainder=True), batch_size=None)
refused(["batch_size"], data=dataset.batch(4, drop_remainder=True))
distributed = dt.strategy().experimental_distribute_dataset(dataset.batch(4))
refused(["batch_size"], data=distributed)
refused(["tf.data.Dataset"], data=lambda context: x)
# It ends in the middle of the second batch.
refused(["data", "total_steps"], data=lambda context: dataset.take(6).filter(lambda row: False))
refused(["data", "generator", "from_generator"], data=(x[:4] for _ in range(9)), batch_size=None)
refused(["data", "Batches", "from_generator"], data=Batches(), batch_size=None)
for endless in (lambda: dataset.repeat()), (lambda: dataset.filter(lambda row: True).repeat()):
    dt.train(step_fn, endless, variables=[built, optimizer], total_steps=7, batch_size=4)
mapped = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
mapped.compile("sgd", lambda y, y_pred: tf.vectorized_map(tf.reduce_sum, (y_pred - y) ** 2))
refuses(["vectorized_map", "tf.map_fn"], lambda: dt.fit(mapped, x, x[:, :2], batch_size=4))
seen = keras.metrics.Sum()  # a metric is state as well
last = dt.train(
    returns(lambda batch: seen.update_state(tf.ones(tf.shape(batch)[0]))),
    lambda context: dataset.repeat(),
    variables=[built, optimizer, seen],
    total_steps=7,
    batch_size=4,
)
assert last == {}, last
counted = sum(float(part) for part in dt.strategy().experimental_local_results(seen.total.value))
assert counted == 28, counted
print("all well")
