# SPDX-License-Identifier: Apache-2.0
"""The sources of `fit` by hand: what of them a restarted run would see again, and what strategy they are for."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from refusing import refused

from dtjob_trainer.contract.strategy import ALONE
from dtjob_trainer.data import sources
from dtjob_trainer.data.batches import Place, Wanted
from dtjob_trainer.process import runtime

x, y = np.zeros((10, 3), np.float32), np.zeros(10, np.int64)
dataset = tf.data.Dataset.from_tensor_slices((x, y))


def repeats(data: Any) -> bool:
    """Whether `fit` would say that a restarted run gets the same `data`."""
    wanted = Wanted(batch_size=5 if callable(data) else None, shuffle=True)
    return sources.make(data, None, None, wanted, Place(0, 1, 1)).exact


def shaken(number: Any) -> Any:
    return tf.cast(number, tf.float32) + tf.random.uniform([])


def shaken_in_branches(number: Any) -> Any:
    return tf.cond(number > 5, lambda: shaken(number), lambda: 0.0)


def in_two_tasks(data: Any, replicas: int = 2, **options: Any) -> Any:
    """The source of the second of two tasks."""
    wanted = Wanted(**{"shuffle": True, **options})
    return sources.make(data, y if data is x else None, None, wanted, Place(1, 2, replicas))


def check() -> None:
    check_two_tasks()
    check_what_repeats()
    check_traits()


def check_two_tasks() -> None:
    shaken_order = tf.data.Options()
    shaken_order.deterministic = False
    loose = dataset.map(lambda a, b: (a, b), num_parallel_calls=2, deterministic=False)
    refused(["x", "deterministic=False"], lambda: in_two_tasks(loose.batch(5)))
    unordered = {"num_parallel_calls": 2, "deterministic": False}
    inside = dataset.flat_map(lambda a, b: dataset.map(lambda c, d: (c, d), **unordered))
    refused(["x", "deterministic=False"], lambda: in_two_tasks(inside.batch(5)))
    assert in_two_tasks(dataset.shuffle(10).batch(5)).compared == "all"
    assert in_two_tasks(dataset.map(lambda a, b: (shaken(a), b)).batch(5)).compared == "labels"
    generated = tf.data.Dataset.from_generator(lambda: iter([(x, y)]), output_signature=dataset.batch(5).element_spec)
    assert in_two_tasks(generated).compared == "targets"
    assert not repeats(generated)
    assert not repeats(loose.batch(5))
    assert not repeats(dataset.with_options(shaken_order).batch(5))
    assert in_two_tasks(dataset.with_options(shaken_order).batch(5))._dataset.options().deterministic
    read_once = ["x", "generator", "one process alone", "PyDataset", "from_generator"]
    refused(read_once, lambda: in_two_tasks(each for each in [(x, y)]))
    remote = Place(0, 1, 2, remote=True)
    refused(read_once, lambda: sources.make((each for each in [(x, y)]), None, None, Wanted(), remote))
    rows = tf.data.Dataset.from_tensor_slices((tf.ragged.constant([[1.0], []] * 5), y)).batch(5)
    refused(["x", "ragged and sparse", "to_tensor()"], lambda: sources.make(rows, None, None, Wanted(), remote))
    assert in_two_tasks(x, 64).sizes.batch == 32  # replicas without a row rest
    assert in_two_tasks(x, 64, any_batch_size=True).sizes.batch == 64


def check_what_repeats() -> None:
    numbers, generator = tf.data.Dataset.range(10), tf.random.Generator.from_seed(1)
    steady = numbers.map(lambda number: tf.random.stateless_uniform([], [1, number]), num_parallel_calls=2)
    assert repeats(steady.batch(5))
    assert repeats(numbers.map(shaken).batch(5))  # skipping what was seen draws as often
    assert not repeats(numbers.map(shaken_in_branches, num_parallel_calls=2).batch(5))
    assert not repeats(numbers.map(lambda number: generator.uniform([])).batch(5))
    assert not repeats(tf.data.Dataset.zip(numbers.shuffle(3), numbers).batch(5))
    inside = numbers.interleave(lambda number: numbers.map(shaken), num_parallel_calls=2)
    for unknown in (inside, numbers.flat_map(lambda number: numbers.shuffle(3))):
        assert not repeats(unknown.apply(tf.data.experimental.assert_cardinality(100)).batch(5))
    flip = keras.layers.RandomFlip()
    images = tf.data.Dataset.from_tensors(np.zeros((4, 4, 3), np.float32)).repeat(10)
    assert not repeats(images.map(flip).batch(5))
    assert repeats(lambda context: numbers.map(shaken))
    assert not repeats(lambda context: tf.data.Dataset.from_tensor_slices(context.shuffled(10)).map(shaken))
    assert repeats(lambda context: tf.data.Dataset.from_tensor_slices(context.shuffled(10)).map(lambda row: row))


def check_traits() -> None:
    """Without a task the traits are those of the strategy that the program has made ambient."""
    assert runtime.current().traits is ALONE
    made = {
        "OneDevice": tf.distribute.OneDeviceStrategy("/cpu:0"),
        "Mirrored": tf.distribute.MirroredStrategy(["/cpu:0"]),
        "CentralStorage": tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"]),
        "MultiWorkerMirrored": tf.distribute.MultiWorkerMirroredStrategy(),
    }
    for name, strategy in made.items():
        with strategy.scope():
            assert runtime.current().traits.name == name
