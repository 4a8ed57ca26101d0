# SPDX-License-Identifier: Apache-2.0
"""What a `train_step` or `test_step` of the model's own returns, as one device would show it of the global batch.

Each replica leaves its values in a place of its own, so that sums over replicas and tasks bring all of them together.
What is the result of a metric is read of the metric once the states of all are; of what else a step returns, a sum,
largest or smallest over the batch's rows is that of all rows, and anything else is taken as a mean over rows.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.placement import kinds, tracker
from dtjob_trainer.placement.cuts import Cut, setting
from dtjob_trainer.strategies.collective import Group

Array = npt.NDArray[Any]
Kind = Literal["mean", "part", "sum", "max", "min"]

ROWS = "rows/"
"""The name of each replica's [rows that count, rows of the global batch] among what it leaves."""
_SAME = ("Identity", "Cast", "Reshape", "Squeeze")
_REDUCTIONS: Mapping[str, Kind] = {"Sum": "sum", "Max": "max", "Min": "min"}
_noted: ContextVar[list[tuple[Any, Any, str | None]] | None] = ContextVar("noted", default=None)
"""Results that metrics gave in the step that is being traced: each with its metric and, of several, its name."""


@dataclass(frozen=True)
class Way:
    """How the replicas' values of one name make one."""

    kind: Kind
    dtype: Any
    """NumPy's, of what the step returned."""
    metric: Any = None
    """The metric whose result it is, if any."""
    part: str | None = None
    """Which of the metric's results, where it has several."""


class Returned:
    """The values of a model's train_step, or of its test_step."""

    def __init__(self) -> None:
        self._ways: dict[str, Way] = {}

    def of_replica(self, step: Callable[[], Any], cut: Cut) -> dict[str, Any]:
        """Run `step`; what this replica leaves: by name, [replicas, …] with zeros in the others' places."""
        notes: list[tuple[Any, Any, str | None]] = []
        with setting(_noted, notes):
            logs = flat(step())
        found, left = tracker.current(), {}
        for name, value in logs.items():
            tensor = tf.convert_to_tensor(value)
            _, metric, part = next((note for note in reversed(notes) if note[0] is value), (None, None, None))
            if found is None or metric is not None:
                kind = _kind_of(tensor)
            else:
                tensor, kind = _of_one_device(found, tensor)
            self._ways[name] = Way(kind, tensor.dtype.as_numpy_dtype, metric, part)
            left[name] = tensor
        with tracker.off():
            return {name: _placed(_wide(tensor), cut) for name, tensor in left.items()} | {
                ROWS: _placed(tf.stack([cut.examples, cut.total]), cut)
            }

    def share_of(self, name: str, left: Mapping[str, Any]) -> float | None:
        """These replicas' part of `name` over the global batch, such that parts add up; None where no step gave it, or
        no number, or one that no sum makes (the largest).

        Of a metric's result, what that comes to of these replicas' states alone.
        """
        if name not in left or np.ndim(left[name]) != 1:
            return None
        rows, total = _rows_of(left)
        way = self._ways[name]
        if way.kind == "part":
            return float(np.asarray(left[name], np.float64).sum())
        if way.metric is None and way.kind != "mean":
            return float(np.asarray(left[name], np.float64)[rows > 0].sum()) if way.kind == "sum" else None
        values = np.where(rows > 0, np.asarray(left[name], np.float64), 0.0)
        return float(values @ rows / max(total, 1.0))

    def gathered(self, left: Mapping[str, Any], group: Group) -> dict[str, Array]:
        """What all replicas have left. Collective."""
        arrays = {name: np.asarray(value, np.float64) for name, value in left.items()}
        return dict(zip(arrays, group.sum_each([*arrays.values()]), strict=True))

    def logs(self, left: Mapping[str, Array]) -> dict[str, Any]:
        """One value a name out of what all replicas have left; metrics are read as they are now."""
        rows, _ = _rows_of(left)
        return {name: self._value(name, array, rows) for name, array in left.items() if name != ROWS}

    def _value(self, name: str, values: Array, rows: Array) -> Any:
        way = self._ways[name]
        if way.metric is not None:
            result = way.metric.result()
            return np.asarray(result if way.part is None else result[way.part], np.float64).tolist()
        if way.kind == "part":
            return self._number(way, values.sum(axis=0))
        live = rows > 0 if rows.any() else np.ones_like(rows, bool)
        values, weights = values[live], rows[live]
        if way.kind == "mean":
            weights = np.maximum(weights, 1.0).reshape(-1, *[1] * (values.ndim - 1))
            one = (values * weights).sum(axis=0) / weights.sum()
        else:
            one = getattr(np, way.kind)(values, axis=0)
        return self._number(way, one)

    @staticmethod
    def _number(way: Way, one: Any) -> Any:
        narrow = np.issubdtype(way.dtype, np.floating) and way.dtype != np.float64
        return np.asarray(one, np.float32 if narrow else np.float64).tolist()


def joined(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What replicas left in several calls that make up one batch."""
    return {name: tf.concat([left[name] for left in each], 0) for name in each[0]}


def flat(logs: Any) -> dict[str, Any]:
    """What a step returned as one dict, without dicts inside it: those Keras takes apart as well."""
    found: dict[str, Any] = {}
    for name, value in (logs or {}).items():
        found |= flat(value) if isinstance(value, Mapping) else {name: value}
    return found


@contextlib.contextmanager
def noting_results(metrics: Sequence[Any]) -> Iterator[None]:
    """While this lasts, results of `metrics` are known again where a step returns them."""
    with contextlib.ExitStack() as stack:
        for metric in metrics:
            stack.enter_context(hooks.during(keras3.METRIC_RESULT, partial(partial, _result, metric), on=metric))
        yield


def _result(metric: Any, own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    notes, found = _noted.get(), tracker.current()
    if notes is None or found is None or found.mode is not kinds.Mode.STEP:
        result = own(*args, **kwargs)
    else:
        with found.within(kinds.Mode.OFF):
            result = tf.nest.map_structure(tf.identity, own(*args, **kwargs))
        for number, each in enumerate(tf.nest.flatten(result)):
            again = partial(_result_of_all, partial(own, *args, **kwargs), number)
            kinds.put(each, kinds.Placement(kinds.Kind.LATER, make=again))
    if notes is not None:
        parts = result.items() if isinstance(result, Mapping) else [(None, result)]
        notes += [(value, metric, part) for part, value in parts]
    return result


def _wide(tensor: Any) -> Any:
    """`tensor` in a type that loses nothing, and as one number if nobody knows how many it has."""
    exact = tensor.dtype in (tf.float64, tf.int32, tf.int64)
    tensor = tf.cast(tensor, tf.float64 if exact else tf.float32)
    return tensor if tensor.shape.is_fully_defined() else tf.reduce_mean(tensor)


def _placed(value: Any, cut: Cut) -> Any:
    """`value` in this replica's place, with zeros in those of the others."""
    own = tf.range(cut.replicas) == _replica_id(cut)
    return tf.where(tf.reshape(own, [-1] + [1] * value.shape.rank), value[None], tf.zeros_like(value)[None])


def _result_of_all(own: Callable[[], Any], number: int) -> Any:
    """One of a metric's results, as one device has it."""
    found = tracker.current()
    assert found is not None
    with found.within(kinds.Mode.STEP):
        return found.same(tf.nest.flatten(own())[number])


def _of_one_device(found: tracker.Tracker, tensor: Any) -> tuple[Any, Kind]:
    """What a replica leaves of a tensor that a step returns, and how the replicas' make one."""
    if not tensor.shape.is_fully_defined():
        tensor = tf.reduce_mean(tf.cast(tensor, tf.float32))
    if kinds.kind(tensor) is kinds.Kind.PARTIAL:
        return tensor, "part"
    return found.same(tensor), "mean"


def _replica_id(cut: Cut) -> Any:
    return 0 if cut.replicas == 1 else tf.distribute.get_replica_context().replica_id_in_sync_group


def _rows_of(left: Mapping[str, Any]) -> tuple[Array, float]:
    """Each replica's rows, and those of the global batch."""
    both = np.asarray(left[ROWS], np.float64)
    return both[:, 0], float(both[:, 1].max(initial=0.0) if len(both) else 0.0)


def _kind_of(tensor: Any) -> Kind:
    """How values of several replicas make one: seen at the operation that made this one of its batch's rows."""
    operation = getattr(tensor, "op", None)
    while operation is not None and operation.type in _SAME:
        operation = operation.inputs[0].op
    if operation is None:
        return "mean"
    if operation.type in _REDUCTIONS:
        shape, axes = operation.inputs[0].shape, tf.get_static_value(operation.inputs[1])
        over_rows = shape.rank and shape[0] is None and axes is not None
        if over_rows and 0 in np.atleast_1d(axes) % shape.rank:
            return _REDUCTIONS[operation.type]
    return "sum" if _counts_rows(operation) else "mean"


def _counts_rows(operation: Any) -> bool:
    """Whether it is the number of a batch's rows: the first entry of a shape whose first dimension is open."""
    if operation.type != "StridedSlice" or operation.inputs[0].op.type != "Shape":
        return False
    shape, begin = operation.inputs[0].op.inputs[0].shape, tf.get_static_value(operation.inputs[1])
    first = begin is not None and begin.tolist() == [0] and operation.get_attr("shrink_axis_mask") == 1
    return bool(first and shape.rank and shape[0] is None)
