# SPDX-License-Identifier: Apache-2.0
"""One step of a custom loop, as engines run it: the program's `step_fn` on the rows of one replica."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from dtjob_trainer.data import elements
from dtjob_trainer.errors import StepError
from dtjob_trainer.placement.lookups import batch_of_step
from dtjob_trainer.placement.shard import Shard, setting


class CustomStep:
    """Stands where engines have a compiled model (`TrainedModel`)."""

    custom_train_step = custom_test_step = True
    steps_per_call, by_xla = 1, False

    def __init__(self, step_fn: Callable[[Any], Any], rows: int | None) -> None:
        """`rows`: the examples of each replica at each step. None: any number."""
        # a function of its own would hide the replicas from the optimizer inside (merge_call)
        self._body, self._rows = getattr(step_fn, "python_function", step_fn), rows

    def train_replica(self, shard: Shard, *decoded: Any) -> dict[str, Any]:
        """In the graph: run the step on (x, y, weights); what it returns, by name (float32)."""
        parts = [part for part in elements.with_rows(decoded, self._rows) if part is not None]
        batch = parts[0] if len(parts) == 1 else tuple(parts)
        with setting(batch_of_step, batch):
            result = self._body(batch)
        if result is None:
            return {}
        named = result if isinstance(result, Mapping) else {"loss": result}
        return {str(name): tf.cast(value, tf.float32) for name, value in named.items()}


def check_results(concrete: Any) -> None:
    """Raise StepError for results of a traced step that cannot be reported."""
    for name, spec in concrete.structured_outputs.items():
        if spec.shape.rank != 0:
            raise StepError(
                f"step_fn returned {name!r} of shape {spec.shape}; return nothing, a scalar loss, or a dict of "
                "scalars: this replica's part of each, as they are summed over the replicas"
            )
