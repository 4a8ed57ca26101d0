# SPDX-License-Identifier: Apache-2.0
"""Everything that training changes, as named tensors: read for a checkpoint, written back on restore.

Shared variables (weights, optimizer slots) are equal on all replicas, so one value is kept. Local variables, which each
replica changes by itself (batch normalisation's moving statistics, seeds, metrics), are kept for every replica: a
resumed run would differ from the undisturbed one otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.errors import StateError
from dtjob_trainer.models.values import (
    Array,
    Form,
    Values,
    assign,
    bytes_of,
    form_of,
    in_groups,
    is_remote,
    rows_there,
    value_there,
)
from dtjob_trainer.strategies.collective import Group
from dtjob_trainer.strategies.sharded_variables import is_sharded, shards_of

METRIC = "metric/"
"""How names of metrics' variables begin: what replicas count is added up where their number has changed."""


class State:
    """Named variables under a strategy, as Keras 3 has them (with `value`, `shape`, `dtype`)."""

    def __init__(self, group: Group, shared: Mapping[str, Any], local: Mapping[str, Any], averaged: list[Any]) -> None:
        """What is kept, by name: `shared` is equal on all replicas, and each replica changes its own of `local`.

        - averaged: those of `local` whose mean over the replicas means something.
        """
        self._group = group
        self._shared, self._local, self._averaged = dict(shared), dict(local), averaged
        self._untouched: list[list[Array]] | None = None

    def capture(self) -> dict[str, Any]:
        """Name to tensor, at the chief task; empty elsewhere. Collective: every task calls it at the same step.

        Of what is on parameter servers it has lists of `Rows`, whose tensors are there. The others share the buffers of
        variables in the host's memory; TensorFlow copies one when training next writes to it.
        """
        rows = self._group.gather(self._local_rows())
        if self._group.index != 0:
            return {}
        copies = {name: self._copies(v)[0] for name, v in (self._shared | self._local).items()}
        remote = {name: copy for name, copy in copies.items() if is_remote(copy)}
        here = {name: _read(copy) for name, copy in copies.items() if name not in remote}
        return here | rows_there(remote) | {"replicas": tf.constant(rows)}

    def restore(self, values: Values | None) -> bool:
        """Give every variable its value of `values`, which only the chief task has (the others pass None).

        Collective. Returns whether the state is exact; it is not where the number of replicas has changed. Raises
        StateError at the chief where `values` are another model's.
        """
        rows, rows_fit = None, True
        sizes = {name: bytes_of(form_of(v.shape, v.dtype)) for name, v in self._local.items()}
        row_size = sum(sizes.values())
        if values is not None:
            self._check(values)
            rows = values.array("replicas")
            rows_fit = rows.shape == (self._group.replicas, row_size)
            if not rows_fit:
                rows = self._rows_of_others(values, rows, row_size)
        remote = {name: copy for name, v in self._shared.items() if is_remote(copy := self._copies(v)[0])}
        if remote:
            assert values is not None
            assign(values, remote)
        forms = {name: form_of(v.shape, v.dtype) for name, v in self._shared.items() if name not in remote}
        for names in in_groups(forms, lambda name: bytes_of(forms[name])):
            for name, value in zip(names, self._of_chief(values, {name: forms[name] for name in names}), strict=True):
                for copy in self._copies(self._shared[name]):
                    copy.assign(value)
        size = self._group.replicas * row_size
        data = self._group.broadcast(None if rows is None else _raw(rows), size)
        first = self._group.first_replica * row_size
        for name, variable in self._local.items():
            for replica, copy in enumerate(self._copies(variable)):
                start = first + replica * row_size
                copy.assign(_of_raw(data[start : start + sizes[name]], form_of(variable.shape, variable.dtype)))
            first += sizes[name]
        return rows_fit

    def _of_chief(self, values: Values | None, forms: Mapping[str, Form]) -> list[Any]:
        """The chief's `values` of these names and forms, in every task. Collective."""
        found = None if values is None else values.read(list(forms))
        if self._group.tasks == 1:
            assert found is not None
            return found
        payload = None
        if found is not None:
            raw = [_raw(np.asarray(each)) for each in found]
            payload = raw[0] if len(raw) == 1 else np.concatenate(raw)
        sizes = [bytes_of(form) for form in forms.values()]
        data = self._group.broadcast(payload, sum(sizes))
        parts = np.split(data, np.cumsum(sizes)[:-1])
        return [_of_raw(part, form) for part, form in zip(parts, forms.values(), strict=True)]

    def unusable(self) -> str | None:
        """What makes the weights unusable: "NaN" where one is no number, "Infinity" where one is infinite, else None.

        Computed where the weights are, so that no parameter server sends them.
        """
        weights = [v for name, v in self._shared.items() if not name.startswith("optimizer")]
        found = {each for v in weights if tf.as_dtype(v.dtype).is_floating for each in _unusable(self._copies(v)[0])}
        return next((each for each in ("NaN", "Infinity") if each in found), None)

    def handles(self) -> set[int]:
        """The ids of the handles of all that is kept here."""
        return {id(copy.handle) for v in (self._shared | self._local).values() for copy in self._copies(v)}

    def not_among(self, used: Sequence[Any]) -> list[str]:
        """Names of those `tf.Variable`s of `used` (a traced function's; also distributed ones) that are not kept."""
        handles, local = self.handles(), self._group.strategy.experimental_local_results
        return sorted({copy.name for each in used for copy in local(each) if id(copy.handle) not in handles})

    def leave_out_untouched(self) -> None:
        """From now on, have a moving statistic that still is what it is now count for nothing in its mean: the task of
        that replica has had no examples, and was given no mean yet. Call it before anything is restored."""
        self._untouched = [[np.array(copy) for copy in self._copies(v)] for v in self._averaged]

    def average_local(self) -> None:
        """Give every replica the mean of the moving statistics. Collective; called at ends of epochs and runs only.

        Keras 3 lets each replica keep its own; the mean is what the statistics of the global batch come to.
        """
        if not self._averaged:
            return
        replicas = len(self._copies(self._averaged[0])) * self._group.tasks
        if replicas == 1:  # CentralStorage has one for all replicas, too
            return
        copies = [self._touched(number) for number in range(len(self._averaged))]
        sums = [sum_of(some, v.shape) for some, v in zip(copies, self._averaged, strict=True)]
        *totals, counts = self._group.sum_each([*sums, np.array([len(some) for some in copies], np.float64)])
        for variable, total, count in zip(self._averaged, totals, counts, strict=True):
            mean = (total / max(count, 1.0)).astype(variable.dtype)
            for copy in self._copies(variable) if count else ():
                copy.assign(mean)

    def _touched(self, number: int) -> tuple[Any, ...]:
        """What this task's replicas hold of one of the moving statistics, as far as it counts."""
        copies = self._copies(self._averaged[number])
        if self._untouched is None:
            return copies
        pairs = zip(copies, self._untouched[number], strict=True)
        return tuple(copy for copy, first in pairs if not np.array_equal(copy, first))

    def _check(self, values: Values) -> None:
        for name, variable in (self._shared | self._local).items():
            here, there = form_of(variable.shape, variable.dtype), values.forms.get(name)
            if there != here:
                raise StateError(
                    f"the checkpoint is of another model: variable {name} is {_words(here)} here and "
                    f"{_words(there) if there else 'missing'} there; "
                    f"restore the model of that run, or {self._group.anew}"
                )

    def _rows_of_others(self, values: Values, old: Array, row_size: int) -> Array:
        """Rows for another number of replicas: all get the first one's state; of metrics the first gets the sum."""
        whole = old.ndim == 2 and old.shape[1] == row_size
        rows = np.zeros((self._group.replicas, row_size), np.uint8)
        offset = 0
        for name, variable in self._local.items():
            array = values.array(name)
            size = array.nbytes
            if not name.startswith(METRIC):
                rows[:, offset : offset + size] = _raw(array)
            elif whole and variable.aggregation == "sum":
                counted = _of_raw(_raw(old[:, offset : offset + size]), ((len(old), *array.shape), array.dtype.name))
                rows[0, offset : offset + size] = _raw(counted.sum(axis=0, dtype=array.dtype))
            elif variable.aggregation == "only_first_replica":  # what all replicas change alike, say
                rows[:, offset : offset + size] = _raw(array)
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
        copies = self._copies(variable)
        value: Array = copies[min(replica, len(copies) - 1)].numpy()
        return np.zeros_like(value) if name.startswith(METRIC) and replica >= len(copies) else value

    def _copies(self, variable: Any) -> tuple[Any, ...]:
        """The `tf.Variable` of each replica of this task."""
        return copies_of(self._group.strategy, variable)


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


def copies_of(strategy: Any, variable: Any) -> tuple[Any, ...]:
    """The `tf.Variable` that each replica of this task holds of a Keras variable."""
    if is_sharded(variable):  # which TensorFlow would take apart
        return (variable.value,)
    copies: tuple[Any, ...] = strategy.experimental_local_results(variable.value)
    return copies


def _read(copy: Any) -> Any:
    """Its value in the host's memory: on a GPU, what is being saved would stand there twice once training writes."""
    if is_sharded(copy):
        return tf.convert_to_tensor(copy)
    device = tf.DeviceSpec.from_string(copy.device or "")
    if device.device_type in (None, "CPU") and not device.device_index:
        return copy.read_value()
    with tf.device("CPU:0"):
        return tf.identity(copy.read_value())


def _unusable(copy: Any) -> list[str]:
    """Which of NaN and Infinity a variable holds."""
    found = []
    for _, shard in shards_of(copy):
        value = value_there(shard)
        with tf.device(shard.device):
            found += ["NaN"] if tf.reduce_any(tf.math.is_nan(value)) else []
            found += ["Infinity"] if tf.reduce_any(tf.math.is_inf(value)) else []
    return found


def sum_of(copies: tuple[Any, ...], shape: Any = ()) -> npt.NDArray[np.float64]:
    """The sum of the values that replicas of this task hold of one variable; zeros of this `shape` where it is none."""
    if not copies:
        return np.zeros(shape)
    total: npt.NDArray[np.float64] = np.sum([np.asarray(copy, np.float64) for copy in copies], axis=0)
    return total


def as_keras3(variable: Any) -> Any:
    """A variable of Keras 3 or TensorFlow, with the attributes of a Keras 3 variable."""
    return variable if isinstance(variable, keras.Variable | Plain) else Plain(variable)


def named(group: str, variables: Iterable[Any]) -> dict[str, Any]:
    """Variables of Keras 3 or TensorFlow by names that are the same in every process of a program."""
    return {f"{group}/{number:04d}/{v.path}": v for number, v in enumerate(map(as_keras3, variables))}


def is_local(variable: Any) -> bool:
    """Whether each replica changes this variable by itself: made untrainable (not frozen later) and not aggregated, or
    a metric's."""
    if isinstance(variable, Plain):
        return variable.local
    if variable.synchronization == "on_read":
        return True
    value = variable.value.variables[0] if is_sharded(variable) else variable.value
    return not value.trainable and variable.aggregation == "none"


def _words(form: Form) -> str:
    """Shape and type, as `(2, 3) float32`."""
    return f"{form[0]} {form[1]}"


def _raw(array: Array) -> npt.NDArray[np.uint8]:
    """The bytes of an array; its own memory where that is possible."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _of_raw(data: npt.NDArray[np.uint8], form: Form) -> Array:
    """An array of this form, of its bytes."""
    array: Array = np.ascontiguousarray(data).view(tf.as_dtype(form[1]).as_numpy_dtype).reshape(form[0])
    return array


def added_to(variable: Any, value: Any) -> Any:
    """What `value` (in a graph) has beside a Keras `variable` in a sum; None if it is no such sum."""
    if value.op.type not in ("Add", "AddV2"):
        return None
    before, added = value.op.inputs
    while before.op.type == "Identity":
        before = before.op.inputs[0]
    handle = before.graph.capture(variable.value.handle)
    return added if before.op.type == "ReadVariableOp" and before.op.inputs[0] is handle else None
