"""Everything that training changes, as named tensors: read for a checkpoint, written back on restore.

Shared variables (weights, optimizer slots) are equal on all replicas, so one value is kept. Variables that each replica
changes by itself (batch normalisation's moving statistics, seeds, metrics) are kept for every replica: a resumed
run would differ from the undisturbed one otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.errors import StateError
from dtjob_trainer.strategies.collective import Data, Group
from dtjob_trainer.strategies.sharded_variables import is_sharded

Array = npt.NDArray[Any]

METRIC = "metric/"
"""How names of metrics' variables begin: what replicas count is added up where their number has changed."""


class State:
    """Named variables under a strategy, as Keras 3 has them (with `value`, `shape`, `dtype`)."""

    def __init__(self, group: Group, shared: Mapping[str, Any], local: Mapping[str, Any], averaged: list[Any]) -> None:
        """`shared` and `local` as above; `averaged`: those of `local` whose mean over the replicas means something."""
        self._group = group
        self._shared, self._local, self._averaged = dict(shared), dict(local), averaged
        self._untouched: list[list[Array]] | None = None

    def capture(self) -> dict[str, Any]:
        """Name to tensor, at the chief task; empty elsewhere. Collective: every task calls it at the same step.

        The tensors share the buffers of variables in the host's memory; TensorFlow copies one when training next writes
        to it.
        """
        rows = self._group.gather(self._local_rows())
        if self._group.index != 0:
            return {}
        tensors = {name: _read(self._parts(v)[0]) for name, v in (self._shared | self._local).items()}
        return tensors | {"replicas": tf.constant(rows)}

    def restore(self, arrays: Mapping[str, Array] | None) -> bool:
        """Give every variable its value of `arrays`, which only the chief task has (the others pass None).

        Collective. Returns whether the state is exact; it is not where the number of replicas has changed. Raises
        StateError at the chief where `arrays` are another model's.
        """
        payload, rows_fit = None, True
        sizes = {name: _byte_size(v) for name, v in (self._shared | self._local).items()}
        row_size = sum(sizes[name] for name in self._local)
        if arrays is not None:
            self._check(arrays)
            rows = arrays["replicas"]
            rows_fit = rows.shape == (self._group.replicas, row_size)
            if not rows_fit:
                rows = self._rows_of_others(arrays, row_size)
            payload = bytearray()  # piece by piece: memory may be short of several times the model
            for array in (*(arrays[name] for name in self._shared), rows):
                payload += array.tobytes()
        shared_size = sum(sizes[name] for name in self._shared)
        data = self._group.broadcast(payload, shared_size + self._group.replicas * row_size)
        offset = 0
        for name, variable in self._shared.items():
            self._assign(variable, [data[offset : offset + sizes[name]]] * len(self._parts(variable)))
            offset += sizes[name]
        first = offset + self._group.first_replica * row_size
        for name, variable in self._local.items():
            starts = [first + replica * row_size for replica in range(len(self._parts(variable)))]
            self._assign(variable, [data[start : start + sizes[name]] for start in starts])
            first += sizes[name]
        return rows_fit

    def unusable(self) -> str | None:
        """What makes the weights unusable: "NaN" where one is no number, "Infinity" where one is infinite, else None.

        Computed where the weights are, so that no parameter server sends them.
        """
        weights = [v for name, v in self._shared.items() if not name.startswith("optimizer")]
        found = {kind for v in weights if tf.as_dtype(v.dtype).is_floating for kind in _kinds_of(self._parts(v)[0])}
        return next((kind for kind in ("NaN", "Infinity") if kind in found), None)

    def handles(self) -> set[int]:
        """The ids of the handles of all that is kept here."""
        return {id(part.handle) for v in (self._shared | self._local).values() for part in self._parts(v)}

    def not_among(self, used: Sequence[Any]) -> list[str]:
        """Names of those `tf.Variable`s of `used` (a traced function's) that are not kept here."""
        return names_not_among(self._group.strategy, used, self.handles())

    def leave_out_untouched(self) -> None:
        """From now on, have a moving statistic that still is what it is now count for nothing in its mean: the task of
        that replica has had no examples, and was given no mean yet. Call it before anything is restored."""
        self._untouched = [[np.array(part) for part in self._parts(v)] for v in self._averaged]

    def average_local(self) -> None:
        """Give every replica the mean of the moving statistics. Collective; called at ends of epochs and runs only.

        Keras 3 lets each replica keep its own; the mean is what the statistics of the global batch come to.
        """
        if not self._averaged:
            return
        copies = len(self._parts(self._averaged[0])) * self._group.tasks
        if copies == 1:  # CentralStorage has one for all replicas, too
            return
        parts = [self._touched(number) for number in range(len(self._averaged))]
        sums = [sum_of(some, v.shape) for some, v in zip(parts, self._averaged, strict=True)]
        *totals, counts = self._group.sum_each([*sums, np.array([len(some) for some in parts], np.float64)])
        for variable, total, count in zip(self._averaged, totals, counts, strict=True):
            mean = (total / max(count, 1.0)).astype(variable.dtype)
            for part in self._parts(variable) if count else ():
                part.assign(mean)

    def _touched(self, number: int) -> tuple[Any, ...]:
        """What this task's replicas hold of one of the moving statistics, as far as it counts."""
        parts = self._parts(self._averaged[number])
        if self._untouched is None:
            return parts
        pairs = zip(parts, self._untouched[number], strict=True)
        return tuple(part for part, first in pairs if not np.array_equal(part, first))

    def _check(self, arrays: Mapping[str, Array]) -> None:
        for name, variable in (self._shared | self._local).items():
            here, there = _kind(variable.shape, variable.dtype), "missing"
            if name in arrays:
                there = _kind(arrays[name].shape, arrays[name].dtype)
            if there != here:
                raise StateError(
                    f"the checkpoint is of another model: variable {name} is {here} here and {there} there; "
                    "restore the model of that run, or choose another checkpoint.storage"
                )

    def _rows_of_others(self, arrays: Mapping[str, Array], row_size: int) -> Array:
        """Rows for another number of replicas: all get the first one's state; of metrics the first gets the sum."""
        old = arrays["replicas"]
        whole = old.ndim == 2 and old.shape[1] == row_size
        rows = np.zeros((self._group.replicas, row_size), np.uint8)
        offset = 0
        for name, variable in self._local.items():
            array = arrays[name]
            size = _byte_size(variable)
            if not name.startswith(METRIC):
                rows[:, offset : offset + size] = np.frombuffer(array.tobytes(), np.uint8)
            elif whole and variable.aggregation == "sum":
                counted = np.frombuffer(old[:, offset : offset + size].tobytes(), array.dtype)
                total = counted.reshape(-1, *array.shape).sum(axis=0, dtype=array.dtype)
                rows[0, offset : offset + size] = np.frombuffer(total.tobytes(), np.uint8)
            elif variable.aggregation == "only_first_replica":  # what all replicas change alike, say
                rows[:, offset : offset + size] = np.frombuffer(array.tobytes(), np.uint8)
            offset += size
        return rows

    def _local_rows(self) -> npt.NDArray[np.uint8]:
        rows = []
        for replica in range(self._group.local):
            row = b"".join(self._of_replica(replica, name, v).tobytes() for name, v in self._local.items())
            rows.append(np.frombuffer(row, np.uint8))
        return np.stack(rows)

    def _of_replica(self, replica: int, name: str, variable: Any) -> Array:
        """A replica's value; where replicas share a variable, the first one has counted for all of them."""
        parts = self._parts(variable)
        value: Array = parts[min(replica, len(parts) - 1)].numpy()
        return np.zeros_like(value) if name.startswith(METRIC) and replica >= len(parts) else value

    def _parts(self, variable: Any) -> tuple[Any, ...]:
        """The `tf.Variable` of each replica of this task."""
        return parts_of(self._group.strategy, variable)

    def _assign(self, variable: Any, values: list[Data]) -> None:
        dtype = tf.as_dtype(variable.dtype).as_numpy_dtype
        for part, value in zip(self._parts(variable), values, strict=True):
            part.assign(np.frombuffer(value, dtype).reshape(variable.shape))


class Plain:
    """A `tf.Variable`, also a distributed one, with the attributes of a Keras 3 variable."""

    def __init__(self, variable: Any) -> None:
        self.value, self.path = variable, variable.name
        self.shape, self.dtype = variable.shape, variable.dtype.name
        on_read = variable.synchronization is tf.VariableSynchronization.ON_READ
        unaggregated = variable.aggregation is tf.VariableAggregation.NONE
        self.local = on_read or (unaggregated and not variable.trainable)
        """Whether each replica changes it by itself."""

    @property
    def aggregation(self) -> str:
        """What replicas' writes, or a metric's states, become: Keras's word for it."""
        return str(self.value.aggregation.name.lower())


def parts_of(strategy: Any, variable: Any) -> tuple[Any, ...]:
    """The `tf.Variable` that each replica of this task holds of a Keras variable."""
    if is_sharded(variable):  # which TensorFlow would take apart
        return (variable.value,)
    parts: tuple[Any, ...] = strategy.experimental_local_results(variable.value)
    return parts


def names_not_among(strategy: Any, used: Sequence[Any], handles: Collection[int]) -> list[str]:
    """Names of those `tf.Variable`s of `used`, also distributed ones, whose handles' ids are not among `handles`."""
    parts = [part for variable in used for part in strategy.experimental_local_results(variable)]
    return sorted({part.name for part in parts if id(part.handle) not in handles})


def _read(part: Any) -> Any:
    """Its value in the host's memory: on a GPU, what is being saved would stand there twice once training writes."""
    if is_sharded(part):
        return tf.convert_to_tensor(part)
    device = tf.DeviceSpec.from_string(part.device or "")
    if device.device_type in (None, "CPU") and not device.device_index:
        return part.read_value()
    with tf.device("CPU:0"):
        return tf.identity(part.read_value())


def _kinds_of(part: Any) -> list[str]:
    """Which of NaN and Infinity a variable holds."""
    found = []
    for shard in part.variables if is_sharded(part) else [part]:
        with tf.device(shard.device):
            value = shard.read_value()
            found += ["NaN"] if tf.reduce_any(tf.math.is_nan(value)) else []
            found += ["Infinity"] if tf.reduce_any(tf.math.is_inf(value)) else []
    return found


def sum_of(parts: tuple[Any, ...], shape: Any = ()) -> npt.NDArray[np.float64]:
    """The sum of the values that replicas of this task hold of one variable; zeros of this `shape` where it is none."""
    if not parts:
        return np.zeros(shape)
    total: npt.NDArray[np.float64] = np.sum([np.asarray(part, np.float64) for part in parts], axis=0)
    return total


def named(kind: str, variables: list[Any]) -> dict[str, Any]:
    """Keras 3's variables (or Plain ones) by names that are the same in every process of a program."""
    return {f"{kind}/{number:04d}/{v.path}": v for number, v in enumerate(variables)}


def is_local(variable: Any) -> bool:
    """Whether each replica changes this variable by itself: made untrainable (not frozen later) and not aggregated, or
    a metric's."""
    if variable.synchronization == "on_read":
        return True
    value = variable.value.variables[0] if is_sharded(variable) else variable.value
    return not value.trainable and variable.aggregation == "none"


def _kind(shape: Any, dtype: Any) -> str:
    """Shape and type, as `(2, 3) float32`."""
    return f"{tuple(shape)} {tf.as_dtype(dtype).name}"


def _byte_size(variable: Any) -> int:
    return int(np.prod(variable.shape, dtype=np.int64)) * int(tf.as_dtype(variable.dtype).size)
