# SPDX-License-Identifier: Apache-2.0
"""Datasets whose examples the job's data workers make (tf.data service), each once in a pass and in any order.

The dispatcher hands the elements of the first part of a Dataset (names of files, indices) to data workers one by one
(ShardingPolicy.DYNAMIC). A worker does the rest to its elements alone. So only parts may follow that do the same to
each element, whatever the others are: `take()`, `zip()`, `enumerate()` and others would count what one worker has. All
tasks read from one service job by its name, and each makes its share of a batch of what it gets.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import tensorflow as tf

from dtjob_trainer.contract.task import DATA_SERVICE
from dtjob_trainer.data import randomness
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
_WORK = datasets.MAPS | datasets.INTERLEAVES | {datasets.FILTER, datasets.FLAT_MAP, datasets.RECORDS}
_SERVED = _WORK | datasets.SLICES | datasets.PASSED_OVER | {datasets.SHUFFLE}
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
    parts = parts_of(dataset)
    if why := next(_obstacles(parts), ""):
        raise DataError(f"over_data_service: {why}")
    served = _distributed(parts, 0, f"own-{next(_names)}")
    setattr(served, _BEFORE, parts)
    return served


def source_of(x: Any, wanted: Wanted, place: Place) -> tuple[Source | None, str]:
    """The source of a Dataset that data workers make, in a job that has them, and what to say of it. None if they do
    not make it, and why. Raises DataError for a Dataset over the service that tasks cannot share."""
    if not os.environ.get(DATA_SERVICE) or not isinstance(x, tf.data.Dataset):
        return None, ""
    below, after, batch = parts_of(x), list[Any](), None
    while len(below) > 1 and datasets.kind_of(below[0]) in datasets.PASSED_OVER:
        below.pop(0)
    if datasets.kind_of(below[0]) in datasets.BATCHES:
        batch = below.pop(0)
    chosen = any(hasattr(part, _BEFORE) for part in randomness.pipeline(x))
    if hasattr(first := below[-1], _BEFORE):
        below, after = getattr(first, _BEFORE), below[:-1]
    elif chosen:  # by one of several that a part reads
        below, after = [], below
    if not (why := next(_obstacles_in_fit(batch, below, after, wanted, place), "")):
        return _source(below, after, batch, place, wanted), REMARK
    if chosen and place.shards > 1:
        raise DataError(f"{wanted.argument}: after over_data_service, {why}")
    return None, "" if chosen or wanted.alike else f"data workers do not make the examples, because {why}"


def _obstacles_in_fit(batch: Any, below: list[Any], after: list[Any], wanted: Wanted, place: Place) -> Iterator[str]:
    """Why data workers do not make the parts `below` for the tasks, which do those `after` it and `batch`."""
    if wanted.alike:
        yield "a validation gets the same batches each time; give it a Dataset without that"
    if batch is None:
        yield "the Dataset does not end with batch(); let batch() come last"
    elif (size := int(datasets.batch_size(batch))) < place.shards:
        yield f"batch({size}) has fewer examples than the {place.shards} tasks that share it; make batches larger"
    for kind in map(datasets.kind_of, after):
        if kind not in _SERVED:
            yield f"{_name(kind)} follows; let only map(), filter() and shuffle() follow"
    yield from _obstacles(below)


def _obstacles(parts: Sequence[Any]) -> Iterator[str]:
    """Why data workers would not make each example of these parts of a Dataset once; nothing if they do."""
    kinds = list(map(datasets.kind_of, parts))
    for kind in kinds:
        if kind not in _SERVED:
            yield (
                f"{_name(kind)} needs all elements, and a data worker has some; let it come later, or take it away "
                "(dtjob_trainer.over_data_service chooses the place)"
            )
    if kinds[-1] not in datasets.SLICES:
        yield "it does not begin with from_tensor_slices(), range(), list_files() or TFRecordDataset()"
    if not _WORK.intersection(kinds):
        yield "there is no map() that they could do"
    operations = set().union(*map(randomness.operations_of, parts))
    if operations & {*randomness.PYTHON_OPERATIONS, "PyFuncStateless"}:
        yield "it calls Python code (py_function or numpy_function), which only this process has"
    if any(map(datasets.reads_resources, parts)):
        yield "a function reads a variable or a table, which only this process has"
    if (size := _bytes_of(parts[-1])) > MOST_GIVEN:
        yield f"it begins with {size // 2**20} MiB of arrays; begin with names of files or with indices"


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


def _distributed(parts: Sequence[Any], seed: int, name: str) -> Any:
    """What data workers make of these parts of a Dataset, for all that ask by this name."""
    service = tf.data.experimental.service
    made = datasets.made_again(parts[:-1], parts[-1], seed)
    return made.apply(service.distribute(service.ShardingPolicy.DYNAMIC, os.environ[DATA_SERVICE], job_name=name))


def _source(below: list[Any], after: list[Any], batch: Any, place: Place, wanted: Wanted) -> Source:
    """The share of this task of what data workers make: they do the parts `below`, and it does those `after` it."""
    number = next(_names)

    def examples(context: Any) -> Any:
        # Each pass has a name and an order of its own: shuffle() would begin with its first order in each.
        seed = context.seed + context.epoch
        return datasets.made_again(after, _distributed(below, seed, f"fit-{number}-{context.epoch}"), seed)

    drops = wanted.drop_last or bool(datasets.drops_remainder(batch))
    source = FunctionSource(examples, int(datasets.batch_size(batch)), place, replace(wanted, drop_last=drops))
    source.inexact, source.own_shares = INEXACT, False
    source.may_look_again = False  # it would take an example from the others
    return source
