# SPDX-License-Identifier: Apache-2.0
"""Metrics begin anew without an exchange between tasks for each of their variables.

What `assign` of a variable of replicas that is summed when it is read (ON_READ) gives is the new sum: TensorFlow reads
it there and then, in one all-reduce for each variable, also where nobody takes it. Between GPUs of several tasks it
reduces no int32, so that a metric which counts in that type could not be reset at all.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dtjob_trainer.frameworks import hooks, variables


def without_reading() -> AbstractContextManager[None]:
    """Within this, `assign` of such a variable gives the variable, which is read where somebody looks."""

    def unread(assign: Callable[..., Any]) -> Callable[..., Any]:
        def method(
            self: Any, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
        ) -> Any:
            del read_value  # tf_keras gives it by its place where types are mixed
            done = assign(self, value, use_locking, name, False)
            return self if done is None else done  # within a graph it is an operation

        return method

    return hooks.during(variables.COUNTED_ASSIGNED, unread)
