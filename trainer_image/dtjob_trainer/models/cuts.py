# SPDX-License-Identifier: Apache-2.0
"""How a replica's rows stand to the global batch, and what of it is known while a step is traced."""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import tensorflow as tf


@dataclass(frozen=True)
class Cut:
    """How a replica's rows stand to the global batch."""

    replicas: int
    """Replicas that share the batch."""
    examples: Any
    """Rows of this replica that count (int32): 0 where it stands in with a row of no weight."""
    total: Any
    """Examples of the global batch (int32)."""
    may_be_empty: bool
    """Whether `examples` may be 0 at some step."""
    alone: bool = False
    """Whether a loss is to be what this replica alone would say: the mean of that, weighed by rows, is one device's."""

    @property
    def by_itself(self) -> "Cut":
        """The same cut, where losses are what this replica alone would say."""
        return dataclasses.replace(self, alone=True)

    def mean(self, value: Any) -> Any:
        """The share of `value`, a mean over this replica's rows, in the mean over the global batch."""
        return value * tf.cast(self.examples, value.dtype) / tf.cast(self.total, value.dtype)

    def spoken(self, share: Any) -> Any:
        """What a loss with this `share` is to be."""
        if not self.alone:
            return share
        total, examples = tf.cast(self.total, share.dtype), tf.cast(self.examples, share.dtype)
        return share * tf.math.divide_no_nan(total, examples)

    def counted(self, value: Any) -> Any:
        """`value`, or zero where this replica's row only stands in."""
        return value * tf.cast(self.examples > 0, value.dtype) if self.may_be_empty else value

    def sum(self, value: Any) -> Any:
        """The sum of `value` over all replicas."""
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.stop_gradient(self.counted(value)))


current_cut: ContextVar[Cut | None] = ContextVar("cut", default=None)
"""The cut of the replica whose loss is being traced; each replica is traced in a thread of its own."""
unscaled: ContextVar[bool] = ContextVar("unscaled", default=False)
"""Whether losses are to be those of this replica's rows alone, scaled by nobody."""


def weighed(cut: Cut, gradients: Sequence[Any]) -> list[Any]:
    """Gradients of what this replica alone would say, each times the replica's part of the global batch's rows."""

    def weigh(gradient: Any) -> Any:
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(cut.mean(gradient.values), gradient.indices, gradient.dense_shape)
        return None if gradient is None else cut.mean(gradient)

    return [weigh(gradient) for gradient in gradients]


@contextlib.contextmanager
def setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """While this lasts, `variable` is `value` in this thread."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextlib.contextmanager
def replaced(module: Any, **functions: Any) -> Iterator[None]:
    """While this lasts, `module`'s functions of these names are `functions`."""
    own = {name: getattr(module, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(module, name, function)
        yield
    finally:
        for name, function in own.items():
            setattr(module, name, function)
