# SPDX-License-Identifier: Apache-2.0
"""Metrics begin anew without an exchange between tasks for each of their variables.

What `assign` of a variable of replicas that is summed when it is read (ON_READ) gives is the new sum: TensorFlow reads
it there and then, in one all-reduce for each variable, also where nobody takes it. Between GPUs of several tasks it
reduces no int32, so that a metric which counts in that type could not be reset at all.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from tensorflow.python.distribute.values import SyncOnReadVariable


@contextlib.contextmanager
def without_reading() -> Iterator[None]:
    """Within this, `assign` of such a variable gives the variable, which is read where somebody looks."""
    assign = SyncOnReadVariable.assign

    def unread(
        self: Any, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        del read_value  # tf_keras gives it by its place where types are mixed
        done = assign(self, value, use_locking, name, False)
        return self if done is None else done  # within a graph it is an operation

    SyncOnReadVariable.assign = unread
    try:
        yield
    finally:
        SyncOnReadVariable.assign = assign
