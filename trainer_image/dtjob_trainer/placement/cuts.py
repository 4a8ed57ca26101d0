# SPDX-License-Identifier: Apache-2.0
"""How a replica's rows stand to the global batch, and what of it is known while a step is traced."""

import contextlib
from collections.abc import Iterator
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
    whole: tuple[bool, ...] = ()
    """By part of the batch, whether every replica has all rows of the part. Empty: they share all parts."""

    def mean(self, value: Any) -> Any:
        """The share of `value`, a mean over this replica's rows, in the mean over the global batch."""
        return value * tf.cast(self.examples, value.dtype) / tf.cast(self.total, value.dtype)

    def counted(self, value: Any) -> Any:
        """`value`, or zero where this replica's row only stands in."""
        return value * tf.cast(self.examples > 0, value.dtype) if self.may_be_empty else value


unscaled: ContextVar[bool] = ContextVar("unscaled", default=False)
"""Whether losses are to be those of this replica's rows alone, scaled by nobody."""


@contextlib.contextmanager
def setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """While this lasts, `variable` is `value` in this thread."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
