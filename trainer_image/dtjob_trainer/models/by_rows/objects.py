# SPDX-License-Identifier: Apache-2.0
"""Loss objects of either package, wherever a step calls them: each gives a replica's part of one device's loss.

A loss that has a value for each row, of that row alone, is reduced with the divisors of the global batch. Whatever else
a loss of the program gives is tried as a scalar. Most losses of the packages themselves have a value for each row.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.impl.api import autograph_artifact

from dtjob_trainer.models.by_rows import scalars, trials
from dtjob_trainer.models.by_rows.slices import UnknownPartError, cut_out, key_of
from dtjob_trainer.models.cuts import Cut, current_cut, replaced, setting, unscaled

_UNLIKE = {"Dice", "Tversky", "Circle", "dice", "tversky", "circle"}
"""Losses of the packages that hold rows against other rows, or sum over all of them before they divide."""
_MASK = "_keras_mask"


@dataclass
class Called:
    """One call of a loss of the program, whose values are not reduced yet."""

    cut: Cut
    name: str
    by_rows: bool | None = None
    """Whether there is a value for each row, of that row alone; None while that is not known."""


_called: ContextVar[Called | None] = ContextVar("called", default=None)


@contextlib.contextmanager
def heard(base: type, package: str) -> Iterator[None]:
    """While this lasts, losses of `package`, whose base class is `base`, are as above where a replica's step is traced.

    A loss that calls others inside is seen as one.
    """
    with contextlib.ExitStack() as stack:
        for kind in _with_call(base):
            if kind.__name__ != "CompileLoss":
                stack.enter_context(replaced(kind, __call__=_hearing(kind.__call__, kind is base, package)))
        yield


def cut_of(values: Any) -> Cut | None:
    """The cut to reduce `values` with, of a loss that is being called, where there is a value for each row.

    None outside such a call, and where its scalar has to be tried.
    """
    called, traced = _called.get(), scalars.current()
    if called is None or traced is None:
        return None
    if called.by_rows is None:
        called.by_rows = bool(values.shape.rank) and _is_for_each_row(values, traced)
    return called.cut if called.by_rows else None


def _is_for_each_row(values: Any, traced: scalars.Traced) -> bool:
    try:
        return trials.kind_of(cut_out(values, traced.edge)) == "each"
    except UnknownPartError:
        return False


def _with_call(base: type) -> list[type]:
    """`base` and every class below it that has a `__call__` of its own."""
    found, queue = [], [base]
    while queue:
        kind = queue.pop()
        queue += kind.__subclasses__()
        if "__call__" in vars(kind) and kind not in found:
            found.append(kind)
    return found


def _hearing(own: Callable[..., Any], is_base: bool, package: str) -> Callable[..., Any]:
    @wraps(own)
    def call(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None, *args: Any, **kwargs: Any) -> Any:
        cut, traced = current_cut.get(), scalars.current()
        arguments = (self, y_true, y_pred, sample_weight, *args)
        if cut is None or traced is None:
            with setting(_called, None):
                return own(*arguments, **kwargs)
        if is_base and _is_own(self, package) and _have_columns(y_pred) and not _pairs(traced, (y_true, y_pred)):
            value = own(*arguments, **kwargs)
        else:
            _note_arguments(traced, (y_true, y_pred, sample_weight))
            called = Called(cut, self.name or type(self).__name__)
            with setting(current_cut, None), setting(unscaled, True), setting(_called, called if is_base else None):
                value = own(*arguments, **kwargs)
            if not called.by_rows and not value.shape.rank:
                value = (scalars.alone if cut.alone else scalars.share)(value, cut, called.name)
        if cut.alone and not value.shape.rank:
            value = tf.identity(value)  # so that no other tensor is taken for it
            traced.means.add(key_of(value))
        return value

    found: Callable[..., Any] = autograph_artifact(call)
    return found


def _note_arguments(traced: scalars.Traced, arguments: Any) -> None:
    pairs = _pairs(traced, arguments)
    scalars.note_rows(traced, [each for each in tf.nest.flatten(arguments) if not any(each is one for one in pairs)])
    scalars.note_rows(traced, [getattr(each, _MASK, None) for each in tf.nest.flatten(arguments)])


def _pairs(traced: scalars.Traced, arguments: Any) -> list[Any]:
    """Those of `arguments` that may hold rows of the batch against each other, as scores of all rows by all rows do:
    with several open dimensions, and neither data nor what a layer makes of it."""
    shapes = ((each, getattr(each, "shape", None)) for each in tf.nest.flatten(arguments))
    several = [
        each
        for each, shape in shapes
        if isinstance(shape, tf.TensorShape) and shape.rank and list(shape).count(None) > 1
    ]
    return [each for each in several if isinstance(each, tf.Tensor) and key_of(each) not in traced.rows]


def _have_columns(y_pred: Any) -> bool:
    """Whether the packages' own functions give a value for each row: of a vector they give one number."""
    return all(getattr(each, "shape", (0,)) != () and len(each.shape) > 1 for each in tf.nest.flatten(y_pred))


def _is_own(loss: Any, package: str) -> bool:
    """Whether `loss` is of the package itself, and has a value for each row."""
    function = getattr(loss, "fn", None)
    function = getattr(function, "func", function)  # of functools.partial
    parts = [type(loss), *([] if function is None else [function])]
    inside = all(str(getattr(part, "__module__", "")).startswith(f"{package}.") for part in parts)
    return inside and not any(getattr(part, "__name__", "") in _UNLIKE for part in parts)
