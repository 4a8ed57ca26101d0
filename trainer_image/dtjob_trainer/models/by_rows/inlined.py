# SPDX-License-Identifier: Apache-2.0
"""Each `tf.function` that a step of replicas calls is traced as a part of the step.

By itself it would be traced once, into a graph that later steps get again: also one that was traced to see which
optimizers a step applies, and that applies none. And nobody would see losses and gradients in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl.api import autograph_artifact
from tensorflow.python.eager.polymorphic_function import autograph_util
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

from dtjob_trainer.models.cuts import setting

_inlining: ContextVar[bool] = ContextVar("inlining", default=False)


def functions() -> AbstractContextManager[None]:
    """While this lasts, functions that this thread calls in a graph become parts of that graph."""
    _watch()
    return setting(_inlining, True)


def nothing() -> AbstractContextManager[None]:
    """While this lasts, functions that this thread calls stay functions: tapes record a call, but not operations that
    are copied one by one."""
    return setting(_inlining, False)


@functools.cache
def _watch() -> None:
    """Have functions look, for the rest of the process, whether they are to become parts of a graph."""
    Function.__call__ = _looking(Function.__call__)


def _looking(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _inlining.get() or tf.executing_eagerly():
            return own(self, *args, **kwargs)
        given = _converted(args, self.input_signature or ())
        if not self._autograph:
            return self.python_function(*given, **kwargs)
        converted = autograph_util.py_func_from_autograph(self.python_function, self._experimental_autograph_options)
        with ag_ctx.ControlStatusCtx(ag_ctx.Status.UNSPECIFIED):  # what calls it may have been left unconverted
            return converted(*given, **kwargs)

    found: Callable[..., Any] = autograph_artifact(call)
    return found


def _converted(args: Sequence[Any], signature: Sequence[Any]) -> list[Any]:
    """`args` as a function would get them: those numbers are tensors of which its `signature` has the types."""

    def convert(spec: Any, value: Any) -> Any:
        is_plain = isinstance(spec, tf.TensorSpec) and not isinstance(value, tf.Tensor | tf.Variable)
        return tf.convert_to_tensor(value, spec.dtype) if is_plain else value

    known = [convert(spec, value) for spec, value in zip(signature, args, strict=False)]
    return [*known, *args[len(known) :]]
