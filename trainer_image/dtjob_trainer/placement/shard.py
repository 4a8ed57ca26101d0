# SPDX-License-Identifier: Apache-2.0
"""The shard of a replica: its rows of the global batch, and what of them is known while a step is traced."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import tensorflow as tf


@dataclass(frozen=True)
class Shard:
    """A replica's rows of the global batch."""

    replicas: int
    """Replicas that share the batch."""
    examples: Any
    """Rows of this replica that count (int32): 0 if its only row is a padding row."""
    total: Any
    """Examples of the global batch (int32)."""
    may_be_empty: bool
    """Whether `examples` may be 0 at some step."""
    whole: tuple[bool, ...] = ()
    """By part of the batch, whether every replica has all rows of the part. Empty: they share all parts."""

    @property
    def is_shared(self) -> bool:
        """Whether replicas share the rows of any part."""
        return not self.whole or not all(self.whole)

    def mean(self, value: Any) -> Any:
        """This replica's part of the mean over the global batch; `value` is a mean over this replica's rows."""
        return value * tf.cast(self.examples, value.dtype) / tf.cast(self.total, value.dtype)

    def counted(self, value: Any) -> Any:
        """`value`, or zero if this replica's row is a padding row."""
        return value * tf.cast(self.examples > 0, value.dtype) if self.may_be_empty else value


traced: ContextVar[Shard | None] = ContextVar("traced", default=None)
"""The shard of the replica whose step is being traced."""
building: ContextVar[bool] = ContextVar("building", default=False)
"""Whether a model is being built: nobody divides its losses by the number of replicas."""


@contextlib.contextmanager
def setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """While this lasts, `variable` is `value` in this thread."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
