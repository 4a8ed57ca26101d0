# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.data.own_rows: functions of map() run for a task's rows alone, and no batch differs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.data import own_rows
from dtjob_trainer.data.batches import Place, Wanted
from dtjob_trainer.data.dataset import DatasetSource

N = 23
ROWS = np.random.default_rng(0).normal(size=(N, 3)).astype("float32")
ENDLESS = Wanted(at_most=9, endless=True)
Made = Callable[[], Any]


def decode(number: Any) -> tuple[Any, Any]:
    number = tf.cast(number, tf.float32)
    return tf.stack([number, tf.sin(number)]), number[None]


def named(row: Any, label: Any) -> tuple[Any, Any]:
    return {"a": row * 2.0, "text": tf.strings.as_string(label)}, tf.cast(label, tf.int32)


def in_order_of(seed: int) -> Any:
    return tf.data.Dataset.range(N).shuffle(N, seed=seed, reshuffle_each_iteration=True)


MAPPED: dict[str, Made] = {
    "range": lambda: tf.data.Dataset.range(N).map(decode).batch(5),
    "in parallel": lambda: tf.data.Dataset.range(N).map(decode, tf.data.AUTOTUNE).batch(5, num_parallel_calls=2),
    "shuffled before": lambda: in_order_of(3).map(decode).batch(4).prefetch(2),
    "slices": lambda: tf.data.Dataset.from_tensor_slices((ROWS, np.arange(N))).map(named).batch(6),
    "two functions and a cache": lambda: in_order_of(1).map(decode).cache().map(lambda x, y: (x + y, y)).batch(7),
    "full batches": lambda: tf.data.Dataset.range(N).map(decode).batch(5, drop_remainder=True),
    "repeated": lambda: tf.data.Dataset.range(N).map(decode).batch(5).repeat().take(30),
    "of unknown length": lambda: tf.data.Dataset.range(N).filter(lambda i: i != 4).map(decode).batch(5),
    "fewer rows than tasks": lambda: tf.data.Dataset.range(N).map(decode).batch(2),
    "said to keep no state": lambda: (
        tf.data.Dataset.range(N)
        .map(lambda i: tf.ensure_shape(tf.numpy_function(lambda i: np.float32(i), [i], tf.float32, stateful=False), []))
        .batch(5)
    ),
}

NOT_MAPPED: dict[str, tuple[Made, str]] = {
    "shuffle after map": (lambda: tf.data.Dataset.range(N).map(decode).shuffle(N, seed=1).batch(5), "before map"),
    "map after batch": (lambda: tf.data.Dataset.range(N).batch(5).map(decode), "before map"),
    "two batches": (lambda: tf.data.Dataset.range(N).batch(1).map(lambda i: i + 1).unbatch().batch(5), "before map"),
    "padded": (lambda: tf.data.Dataset.range(N).map(lambda i: tf.range(i)).padded_batch(5), "before map"),
    "ragged": (lambda: tf.data.Dataset.range(N).map(lambda i: tf.ragged.range(tf.stack([i]))).batch(5), "before map"),
    "random": (lambda: tf.data.Dataset.range(N).map(lambda i: tf.random.uniform([])).batch(5), "stateless"),
    "python": (
        lambda: tf.data.Dataset.range(N).map(lambda i: tf.numpy_function(np.float32, [i], tf.float32)).batch(5),
        "stateful=False",
    ),
    "within interleave": (
        lambda: tf.data.Dataset.range(3).interleave(lambda i: tf.data.Dataset.range(i + 3).map(decode)).batch(5),
        "before map",
    ),
}


def source_of(make: Made, shard: int, shards: int) -> DatasetSource:
    return DatasetSource(make(), Place(shard, shards, shards), ENDLESS)


def told(batch: Any) -> Any:
    return [np.asarray(part).tolist() for part in tf.nest.flatten(batch.inputs)], batch.count, batch.total


@pytest.mark.parametrize("name", MAPPED)
def test_batches_and_marks_are_those_of_a_task_that_maps_all_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = 3
    for shard in range(shards):
        mine = source_of(MAPPED[name], shard, shards)
        assert mine._own is not None
        with monkeypatch.context() as patch:
            patch.setattr(own_rows, "of", lambda *_: (None, ""))
            other = source_of(MAPPED[name], shard, shards)
        assert mine.input_spec() == other.input_spec()
        for number, first_step in ((0, 0), (1, 3)):
            pairs = list(zip(mine.epoch(number, first_step), other.epoch(number, first_step), strict=True))
            assert pairs
            for ours, theirs in pairs:
                assert told(ours) == told(theirs)
                assert ours.marks == theirs.marks


def test_a_function_runs_for_the_rows_of_its_task_alone() -> None:
    seen: list[int] = []

    def look(number: Any) -> Any:
        seen.append(int(number))
        return np.float32(number)

    data = tf.data.Dataset.range(240)
    data = data.map(lambda i: tf.ensure_shape(tf.numpy_function(look, [i], tf.float32, stateful=False), [])).batch(12)
    for _ in DatasetSource(data, Place(1, 3, 3), Wanted()).epoch(0, 0):
        pass
    compared = 8  # rows of the first batch, by which tasks see that they have the same
    assert len(seen) == 240 // 3 + compared
    assert {i for i in range(240) if 4 <= i % 12 < 8} <= set(seen)


@pytest.mark.parametrize("name", NOT_MAPPED)
def test_the_remark_says_how_to_avoid_that_each_task_maps_all_rows(name: str) -> None:
    make, how = NOT_MAPPED[name]
    source = DatasetSource(make(), Place(1, 3, 3), Wanted())
    assert source._own is None
    assert source.remark.startswith("x: each of the 3 tasks makes all examples of each batch")
    assert how in source.remark
    assert source.remark.endswith("(context.shuffled or context.files)")


def test_nothing_is_said_where_nothing_is_mapped_or_one_task_has_all_rows() -> None:
    plain = tf.data.Dataset.from_tensor_slices(ROWS).shuffle(N, seed=1).batch(5)
    assert DatasetSource(plain, Place(0, 3, 3), Wanted()).remark == ""
    assert DatasetSource(MAPPED["range"](), Place(0, 1, 2), Wanted()).remark == ""
