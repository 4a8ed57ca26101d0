# SPDX-License-Identifier: Apache-2.0
"""Whether a metric's state adds up over parts of a batch: found out with made-up rows, as nothing says so."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

Array = npt.NDArray[Any]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

PARTS = (5, 11)
"""Rows of the two parts."""
TIMES = 3
"""How often to draw each kind of numbers."""
_DRAWS: tuple[Draw, ...] = (
    lambda random, shape: random.uniform(0.05, 0.95, shape),
    lambda random, shape: random.normal(0.0, 2.0, shape),
    lambda random, shape: random.integers(0, 2, shape).astype(float),
)


def adds(metric: Any, update: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether what `update` (of `metric`, with such arguments) adds for all rows is what it adds for parts of them.

    False also where that cannot be found out: where made-up rows raise an error, or nothing is ever added. The
    variables are left alone. Of tf_keras only for a function that a Mean wraps; others are taken not to add.
    """
    function = getattr(metric, "_fn", None)
    try:
        with tf.init_scope():
            if function is not None:
                return _all_by_rows(function, metric, args, kwargs)
            if not isinstance(metric, keras.metrics.Metric):
                return False
            found = [_adds(metric, update, rows) for rows in _made_up(args, kwargs)]
    except Exception:
        return False
    return True in found and False not in found


def _all_by_rows(function: Callable[..., Any], metric: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    return all(_by_rows(function, metric, rows) for rows in _made_up(args, kwargs))


def _made_up(args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[list[Any]]:
    """[first part, second part, both] of arguments, some times for each way to draw numbers."""
    random = np.random.default_rng(0)
    for draw in _DRAWS * TIMES:
        whole = keras.tree.map_structure(lambda part, draw=draw: _drawn(part, draw, random), (tuple(args), kwargs))

        def cut(begin: int, end: int | None, whole: Any = whole) -> Any:
            return keras.tree.map_structure(lambda part: part[begin:end] if _has_rows(part) else part, whole)

        yield [cut(0, PARTS[0]), cut(PARTS[0], None), whole]


def _has_rows(part: Any) -> bool:
    return bool(tf.is_tensor(part) and part.shape.rank > 0 and part.shape[0] == sum(PARTS))


def _drawn(part: Any, draw: Draw, random: np.random.Generator) -> Any:
    """Numbers of the shape and type of `part`, with as many rows as there are; other than a tensor as it is."""
    if not tf.is_tensor(part):
        return part
    shape = tuple(sum(PARTS) if place == 0 and size is None else size or 2 for place, size in enumerate(part.shape))
    kind = tf.as_dtype(part.dtype)
    numbers = draw(random, shape) if kind.is_floating else random.integers(0, 2, shape)
    if draw is _DRAWS[0] and kind.is_floating and shape:  # the parts differ in their mean
        numbers = np.moveaxis(np.moveaxis(numbers, 0, -1) * np.linspace(0.1, 1.0, shape[0]), -1, 0)
    return tf.constant(numbers, kind)


def _by_rows(function: Callable[..., Any], metric: Any, rows: list[Any]) -> bool:
    """Whether `function` gives one value for each row, of that row alone."""
    options = getattr(metric, "_fn_kwargs", {})
    parts = [np.asarray(function(*args[:2], **options)) for args, _ in rows]
    if parts[2].ndim == 0:
        return False
    joined = np.concatenate(parts[:2])
    same: bool = joined.shape == parts[2].shape
    return same and _close(joined, parts[2])


def _adds(metric: Any, update: Callable[..., Any], rows: list[Any]) -> bool | None:
    """Whether the parts add up to the whole, from whatever state; None where nothing is added, or no number."""
    empty = [np.zeros(v.shape) for v in metric.variables]
    random = np.random.default_rng(1)
    some = [random.uniform(1.0, 9.0, v.shape).round() for v in metric.variables]
    first, second, whole = (_added(metric, update, empty, each) for each in rows)
    later = _added(metric, update, some, rows[2])
    changes = np.concatenate([np.ravel(part) for part in whole])
    if not np.isfinite(changes).all() or not changes.any():
        return None
    triples = zip(first, second, whole, later, strict=True)
    return all(_close(a + b, c) and _close(c, d) for a, b, c, d in triples)


def _close(one: Array, other: Array) -> bool:
    return bool(np.allclose(one, other, rtol=1e-4, atol=1e-4, equal_nan=True))


def _added(metric: Any, update: Callable[..., Any], state: list[Array], arguments: Any) -> list[Array]:
    """What an update adds to each variable from `state` on."""
    args, kwargs = arguments
    values = [tf.constant(value, v.dtype) for value, v in zip(state, metric.variables, strict=True)]
    with keras.StatelessScope(state_mapping=list(zip(metric.variables, values, strict=True))) as scope:
        update(*args, **kwargs)
    new = [np.asarray(scope.get_current_value(v), np.float64) for v in metric.variables]
    return [value - before for value, before in zip(new, state, strict=True)]
