# SPDX-License-Identifier: Apache-2.0
"""`predict`: predictions for all rows in every task, of which each task computes its share."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.data.sharding import share
from dtjob_trainer.errors import DataError
from dtjob_trainer.process import runtime
from dtjob_trainer.strategies.collective import CHUNK_BYTES, WORD, Group

MOST_DIMENSIONS = 12
"""Of one result."""


@runtime.may_be_cut_off
def predict(model: Any, x: Any, batch_size: int | None = None, verbose: Any = "auto", **arguments: Any) -> Any:
    """What `model.predict(x, …)` returns, in every task: arrays with all rows, in the order of `x`.

    If `model` is of Keras 3 and `x` is an array or a structure of arrays, each task of a group predicts a part of the
    rows, and the tasks exchange the results. Otherwise each task calls `model.predict` with all of `x`. Call it in
    every task, with the same data.

    - arguments: the others of `Model.predict`.

    Raises DataError if the tasks' numbers of rows differ, or if a result does not have one entry for each row.
    """
    here = runtime.under_strategy()
    group = Group(here.strategy, here.task)
    rows = rows_of(x)
    if not here.is_chief and verbose == "auto":
        verbose = 0
    arguments |= {"batch_size": batch_size, "verbose": verbose}
    if group.tasks == 1 or rows is None or not isinstance(model, keras.Model):
        return model.predict(x, **arguments)
    agreed = group.of_each(np.array([rows], np.int64)).ravel()
    if len(set(agreed.tolist())) > 1:
        raise DataError(f"x: the tasks have {agreed.tolist()} rows; give every task the same data")
    if rows < group.tasks:
        return model.predict(x, **arguments)
    begins, ends = share(rows, group.index, group.tasks)
    mine = model.predict(keras.tree.map_structure(lambda array: array[begins:ends], x), **arguments)
    return keras.tree.map_structure(lambda part: all_rows(group, np.asarray(part), ends - begins), mine)


def rows_of(x: Any) -> int | None:
    """The number of rows of an array or of a structure of arrays with as many rows each; None for any other data."""
    found = set()
    for one in keras.tree.flatten(x):
        if not isinstance(one, np.ndarray | tf.Tensor) or not one.shape:
            return None
        found.add(int(one.shape[0]))
    return found.pop() if len(found) == 1 else None


def all_rows(group: Group, part: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """The tasks' parts of a result, one after another; `rows` is this task's number of them."""
    shape = [-1, *[0] * MOST_DIMENSIONS]
    if 0 < part.ndim <= MOST_DIMENSIONS and len(part) == rows and part.dtype.kind != "O":
        shape[: part.ndim] = part.shape
    shapes = group.of_each(np.array(shape, np.int64))
    if any(one[0] < 0 for one in shapes) or len({tuple(one[1:]) for one in shapes}) > 1:
        raise DataError("x: the results do not have one entry of one shape for each row; call model.predict(x) instead")
    lengths = [int(one[0]) for one in shapes]
    found = np.zeros((sum(lengths), *part.shape[1:]), part.dtype)
    start = sum(lengths[: group.index])
    found[start : start + len(part)] = part
    return _sum_of_bytes(group, found)


def _sum_of_bytes(group: Group, mine: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Arrays of the tasks that are zero where another is not, put together bit for bit."""
    data = np.zeros(-(-mine.nbytes // WORD.itemsize), WORD)
    data.view(np.uint8)[: mine.nbytes] = np.ascontiguousarray(mine).reshape(-1).view(np.uint8)
    step = CHUNK_BYTES // WORD.itemsize
    for begin in range(0, data.size, step):
        data[begin : begin + step] = group.sum(data[begin : begin + step])
    return data.view(np.uint8)[: mine.nbytes].view(mine.dtype).reshape(mine.shape)
