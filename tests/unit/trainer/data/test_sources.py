# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.data.sources: what is taken as arrays."""

import inspect
from importlib import import_module
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer import errors
from dtjob_trainer.data import batches, python_batches, sources

HERE = batches.Place(0, 1, 1)


def test_weights_are_of_the_outputs_of_y() -> None:
    x, w = np.zeros((4, 2)), np.ones(4)
    two = {"a": np.zeros(4), "b": np.zeros(4)}
    refused: list[tuple[Any, Any]] = [
        (two, {"a": w}),
        (two, {"a": w, "c": w}),
        ([w, w], [w]),
        (w, {"a": w}),
        (two, [w, w]),
    ]
    for y, weights in refused:
        with pytest.raises(errors.DataError, match="one for each output of y, or None"):
            sources.as_arrays(x, y, weights, "x")
    taken: list[tuple[Any, Any]] = [(two, {"b": w, "a": None}), ([w, w], (w, None)), (two, w), (w, w)]
    for y, weights in taken:
        sources.as_arrays(x, y, weights, "x")


@pytest.mark.parametrize(("n", "batch_size", "rows"), [(64, 16, 16), (65, 16, None), (15, 16, 15), (64, None, 32)])
def test_rows_of_batches_are_known_where_all_have_as_many(n: int, batch_size: int | None, rows: int | None) -> None:
    source = sources.make(np.zeros((n, 2)), None, None, batches.Wanted(batch_size=batch_size), HERE)
    assert source.rows == rows


def test_rows_of_a_dataset_are_known_if_its_batches_say_so() -> None:
    data = tf.data.Dataset.from_tensor_slices(np.zeros((64, 2)))
    for dataset, rows in ((data.batch(16), None), (data.batch(16, drop_remainder=True), 16)):
        assert sources.make(dataset, None, None, batches.Wanted(), HERE).rows == rows


@pytest.mark.parametrize("next_release", [False, True])
def test_workers_of_a_pydataset_read_its_items_in_order(monkeypatch: pytest.MonkeyPatch, next_release: bool) -> None:
    """Keras 3.16 asks for the number of the epoch."""

    class Squares(keras.utils.PyDataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 9

        def __getitem__(self, index: int) -> int:
            return index**2

    home = import_module("keras.src.trainers.data_adapters.py_dataset_adapter")

    class Enqueuer(home.OrderedEnqueuer):  # type: ignore[misc]
        def start(self, epoch: int) -> None:
            self.epoch = epoch
            super().start()

    if next_release and not inspect.signature(home.OrderedEnqueuer.start).parameters.keys() - {"self"}:
        monkeypatch.setattr(home, "OrderedEnqueuer", Enqueuer)
    assert list(python_batches._by_workers(Squares(workers=2), [1, 3, 2])) == [1, 9, 4]


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_pydataset_that_grows_has_as_many_batches_in_each_epoch_as_at_first(shuffle: bool) -> None:
    """As in Keras, also after a restart, which makes the PyDataset anew."""

    class Grows(keras.utils.PyDataset):  # type: ignore[misc]
        batches = 3

        def __len__(self) -> int:
            return self.batches

        def __getitem__(self, index: int) -> Any:
            return np.full((2, 1), index)

        def on_epoch_end(self) -> None:
            self.batches += 1

    wanted = batches.Wanted(shuffle=shuffle)
    source = sources.make(Grows(), None, None, wanted, HERE)
    source.epoch_ends()  # as before the first epoch
    for number in range(2):
        assert [len(list(source.epoch(number, first))) for first in (0, 2)] == [3, 1]
        source.epoch_ends()


def test_a_dataset_that_is_distributed_already_is_refused_with_what_to_take_away() -> None:
    data = tf.data.Dataset.from_tensor_slices(np.zeros((64, 2))).batch(16)
    given = tf.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(data)
    with pytest.raises(errors.DataError, match="take the call of experimental_distribute_dataset"):
        sources.make(given, None, None, batches.Wanted(), HERE)
