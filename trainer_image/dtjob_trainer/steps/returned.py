# SPDX-License-Identifier: Apache-2.0
"""What a custom `train_step` or `test_step` returns, as one device would show it of the global batch.

Each replica leaves its part of a value: the sum of the parts of all replicas and tasks is the value. The result of a
metric is read of the metric, once the states of all replicas are added up. If a step scales its gradients itself, a
value is the mean of the replicas' values, weighted by rows.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.placement import kinds, tracker
from dtjob_trainer.placement.shard import Shard, setting
from dtjob_trainer.strategies.collective import Group

Array = npt.NDArray[Any]
_noted: ContextVar[list[tuple[Any, Any, str | None]] | None] = ContextVar("noted", default=None)
"""Results that metrics gave in the step that is being traced: each with its metric and, of several, its name."""


class Returned:
    """The values of a model's train_step, or of its test_step."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[Any, Any, str | None]] = {}
        """By the name of a value: its NumPy type, the metric whose result it is, and which of that metric's results."""

    def of_replica(self, step: Callable[[], Any], shard: Shard) -> dict[str, Any]:
        """Run `step`; this replica's part of each value by name (float64)."""
        notes: list[tuple[Any, Any, str | None]] = []
        with setting(_noted, notes):
            logs = flat(step())
        parts = {}
        for name, value in logs.items():
            tensor = tf.convert_to_tensor(value)
            _, metric, result = next((note for note in reversed(notes) if note[0] is value), (None, None, None))
            if not tensor.shape.is_fully_defined():
                with tracker.off() if metric is not None else contextlib.nullcontext():
                    tensor = tf.reduce_mean(tf.cast(tensor, tf.float32))
            self._values[name] = tensor.dtype.as_numpy_dtype, metric, result
            parts[name] = _part(tensor, shard, metric is not None)
        return parts

    def loss(self, parts: Mapping[str, Any]) -> float | None:
        """These replicas' part of the loss; None if the step returned no number of that name."""
        found = parts.get("loss")
        return None if found is None or np.ndim(found) else float(found)

    def gathered(self, parts: Mapping[str, Any], group: Group) -> dict[str, Array]:
        """The sums of the parts of all tasks. Collective."""
        arrays = {name: np.asarray(value, np.float64) for name, value in parts.items()}
        return dict(zip(arrays, group.sum_each([*arrays.values()]), strict=True))

    def logs(self, sums: Mapping[str, Array]) -> dict[str, Any]:
        """The values by name, of the sums of all parts; metrics are read as they are now."""
        return {name: _number(*self._values[name], total) for name, total in sums.items()}


def _number(dtype: Any, metric: Any, result: str | None, total: Array) -> Any:
    if metric is not None:
        found = metric.result()
        return np.asarray(found if result is None else found[result], np.float64).tolist()
    narrow = np.issubdtype(dtype, np.floating) and dtype != np.float64
    return np.asarray(total, np.float32 if narrow else np.float64).tolist()


def flat(logs: Any) -> dict[str, Any]:
    """What a step returned as one dict, without dicts inside it: Keras takes these apart as well."""
    found: dict[str, Any] = {}
    for name, value in (logs or {}).items():
        found |= flat(value) if isinstance(value, Mapping) else {name: value}
    return found


@contextlib.contextmanager
def noting_results(metrics: Sequence[Any]) -> Iterator[None]:
    """While this lasts, results of `metrics` are known again where a step returns them."""
    with contextlib.ExitStack() as stack:
        for metric in metrics:
            stack.enter_context(hooks.during(keras3.METRIC_RESULT, hooks.around(partial(_result, metric)), on=metric))
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


def _result_of_all(own: Callable[[], Any], number: int) -> Any:
    """One of a metric's results, as one device has it."""
    found = tracker.current()
    assert found is not None
    with found.within(kinds.Mode.STEP):
        return found.same(tf.nest.flatten(own())[number])


def _part(tensor: Any, shard: Shard, is_result: bool) -> Any:
    """This replica's part of a value that a step returns. Of a metric's result: of what this replica's state gives."""
    found, partial = tracker.current(), shard.replicas == 1
    if found is not None and not is_result:
        partial = kinds.kind(tensor) is kinds.Kind.PARTIAL
        tensor = tensor if partial else found.same(tensor)
    with tracker.off():
        tensor = tf.cast(tensor, tf.float64)
        return tensor if partial else tf.where(shard.examples > 0, shard.mean(tensor), tf.zeros_like(tensor))
