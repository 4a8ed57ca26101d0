# SPDX-License-Identifier: Apache-2.0
"""Datasets whose examples the job's data workers make (tf.data service), each once in a pass and in any order.

The dispatcher hands the elements of the first part of a Dataset (names of files, indices) to data workers one by one
(ShardingPolicy.DYNAMIC). A worker does the rest to its elements alone. So only parts may follow that do the same to
each element, whatever the others are: `take()`, `zip()`, `enumerate()` and others would count what one worker has. All
tasks read from one service job by its name, and each makes its share of a batch of what it gets.
"""

import os
import re
from collections.abc import Sequence
from itertools import count
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.task import DATA_SERVICE
from dtjob_trainer.data import elements, randomness
from dtjob_trainer.data.batches import Place, Source, Wanted
from dtjob_trainer.data.function import FunctionSource
from dtjob_trainer.errors import DataError
from dtjob_trainer.frameworks import datasets

MOST_GIVEN = 2**24
"""Bytes of the slices at the beginning of a Dataset. The dispatcher keeps them for each pass."""
REMARK = "the job's data workers make the examples, in any order (docs: Data workers)"
INEXACT = (
    "data workers give the examples in another order each time: after a restart within an epoch, as many are left out "
    "as were trained on, and not the same ones"
)
_SERVED = (
    datasets.MAPS
    | datasets.INTERLEAVES
    | datasets.SLICES
    | datasets.PASSED_OVER
    | {datasets.FILTER, datasets.FLAT_MAP, datasets.SHUFFLE, datasets.RECORDS}
)
_WORK = datasets.MAPS | datasets.INTERLEAVES | {datasets.FILTER, datasets.FLAT_MAP, datasets.RECORDS}
_BEFORE = "_dtjob_before"
"""The attribute of a Dataset of `over_data_service` that is what it was given."""
_names = count()
"""Numbers the Datasets that this process serves. They are the same ones in every task."""


def over_data_service(dataset: Any) -> Any:
    """`dataset`, whose examples the job's data workers make from here on. Without data workers: `dataset` itself.

    Examples come in any order, each once in a pass. In `fit`, map(), filter() and shuffle() may follow, and batch()
    last. In loops of your own, each task gets a part of the examples.

    Raises DataError if data workers would not make each example once; the message names the part of `dataset`.
    """
    if not os.environ.get(DATA_SERVICE):
        return dataset
    if why := why_not(parts_of(dataset)):
        raise DataError(f"over_data_service: {why}")
    served = _distributed(_again(parts_of(dataset), None, 0), f"own-{next(_names)}")
    setattr(served, _BEFORE, dataset)
    return served


def source_of(x: Any, wanted: Wanted, place: Place) -> tuple[Source | None, str]:
    """The source of a Dataset that data workers make, in a job that has them, and what to say of it. None if they do
    not make it, and why. Raises DataError for a Dataset over the service that tasks cannot share."""
    if not os.environ.get(DATA_SERVICE) or not isinstance(x, tf.data.Dataset):
        return None, ""
    batch, above = None, parts_of(x)
    while above and datasets.kind_of(above[0]) in datasets.PASSED_OVER:
        above.pop(0)
    if above and datasets.kind_of(above[0]) in datasets.BATCHES:
        batch = above.pop(0)
    below, after, chosen = above, [], _is_chosen(x)
    if hasattr(first := parts_of(x)[-1], _BEFORE):
        below, after = parts_of(getattr(first, _BEFORE)), above[:-1]
    elif chosen:  # by one of several that a part reads
        below, after = [], above
    why = _why_not_in_fit(batch, below, after, wanted, place)
    if not why:
        assert batch is not None
        return ServedSource(below, after, batch, place, wanted), REMARK
    if chosen and place.shards > 1:
        raise DataError(f"{wanted.argument}: after over_data_service, {why}")
    return None, "" if chosen or wanted.alike else f"data workers do not make the examples, because {why}"


def _is_chosen(dataset: Any) -> bool:
    """Whether a Dataset is, or reads, one of `over_data_service`, of which each task gets a part."""
    return hasattr(dataset, _BEFORE) or any(map(_is_chosen, datasets.inputs_of(dataset)))


def _why_not_in_fit(batch: Any, below: Sequence[Any], after: Sequence[Any], wanted: Wanted, place: Place) -> str:
    if wanted.alike:
        return "a validation gets the same batches each time; give it a Dataset without that"
    if batch is None:
        return "the Dataset does not end with batch(); let batch() come last"
    if (size := int(datasets.batch_size(batch))) < place.shards:
        return f"batch({size}) has fewer examples than the {place.shards} tasks that share it; make batches larger"
    kinds = [datasets.kind_of(part) for part in after]
    others = [kind for kind in kinds if kind not in _SERVED]
    return f"{_name(others[0])} follows; let only map(), filter() and shuffle() follow" if others else why_not(below)


def why_not(parts: Sequence[Any]) -> str:
    """Why data workers would not make each example of these parts of a Dataset once; empty if they do."""
    return _not_each_once(parts) or _of_this_process(parts)


def _not_each_once(parts: Sequence[Any]) -> str:
    kinds = [datasets.kind_of(part) for part in parts]
    if others := [kind for kind in kinds if kind not in _SERVED]:
        return (
            f"{_name(others[0])} needs all elements, and a data worker has some; let it come later, or take it away "
            "(dtjob_trainer.over_data_service chooses the place)"
        )
    if kinds[-1] not in datasets.SLICES:
        return "it does not begin with from_tensor_slices(), range(), list_files() or TFRecordDataset()"
    return "" if any(kind in _WORK for kind in kinds) else "there is no map() that they could do"


def _of_this_process(parts: Sequence[Any]) -> str:
    """What only this process has of what these parts need; empty if that is nothing."""
    found = set().union(*map(randomness.operations_of, parts))
    if found & {*randomness.PYTHON_OPERATIONS, "PyFuncStateless"}:
        return "it calls Python code (py_function or numpy_function), which only this process has"
    if any(map(datasets.reads_resources, parts)):
        return "a function reads a variable or a table, which only this process has"
    if (size := _bytes_of(parts[-1])) > MOST_GIVEN:
        return f"it begins with {size // 2**20} MiB of arrays; begin with names of files or with indices"
    return ""


def _bytes_of(slices: Any) -> int:
    """The size of the slices of a Dataset, without texts."""
    rows = 0 if datasets.kind_of(slices) == datasets.RANGE else int(slices.cardinality())
    specs = tf.nest.flatten(slices.element_spec)
    return sum(rows * (spec.shape.num_elements() or 0) * spec.dtype.size for spec in specs if spec.dtype != tf.string)


def _name(kind: str) -> str:
    """What users call a kind of Datasets."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub(r"^_|^_?Parallel|Dataset(V\d)?$", "", kind)).lower() + "()"


def parts_of(dataset: Any) -> list[Any]:
    """`dataset` and what it reads, from its last part to its first one, or to one that reads several."""
    found = [dataset]
    while len(read := datasets.inputs_of(found[-1])) == 1 and not hasattr(found[-1], _BEFORE):
        found.append(read[0])
    return found


def _again(parts: Sequence[Any], dataset: Any, seed: int) -> Any:
    """What these parts do, done to `dataset`. None: the last one is the first of a Dataset.

    A data worker that had to shuffle the beginning would first take all that it can get, and lose it at its end.
    """
    left = list(parts)
    if dataset is None:
        dataset = left.pop()
        while left and datasets.kind_of(left[-1]) in {*datasets.PASSED_OVER, datasets.SHUFFLE}:
            if datasets.kind_of(left.pop()) == datasets.SHUFFLE:
                dataset = datasets.in_new_order(dataset, seed)
    for part in reversed(left):
        dataset = datasets.made_again(part, dataset, seed)
    return dataset


def _distributed(dataset: Any, name: str) -> Any:
    service = tf.data.experimental.service
    return dataset.apply(service.distribute(service.ShardingPolicy.DYNAMIC, os.environ[DATA_SERVICE], job_name=name))


class ServedSource(FunctionSource):
    """The examples that data workers make, as the share of this task."""

    def __init__(self, below: list[Any], after: list[Any], batch: Any, place: Place, wanted: Wanted) -> None:
        """- below: the parts that data workers do, the last one first.
        - after: the parts between that and `batch`, which this task does.
        """
        number, seed = next(_names), wanted.seed

        def examples(context: Any) -> Any:
            # Each pass has a name and an order of its own: shuffle() would begin with its first order in each.
            order = seed + context.epoch
            made = _distributed(_again(below, None, order), f"fit-{number}-{context.epoch}")
            return _again(after, made, order)

        drops = wanted.drop_last or bool(datasets.drops_remainder(batch))
        wanted = Wanted(**{**vars(wanted), "drop_last": drops})
        super().__init__(examples, int(datasets.batch_size(batch)), place, wanted)
        self.inexact, self.own_shares = INEXACT, False

    def stand_in(self, number: int) -> tuple[Any, ...]:
        """This task's first row, else a made-up one: another look at the data would take an example from the others."""
        if self._first is not None and self._first[0] == number:
            return self._first[1]
        return elements.as_inputs(keras.tree.map_structure(elements.made_up_row, self._spec))
