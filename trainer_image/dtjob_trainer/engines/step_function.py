# SPDX-License-Identifier: Apache-2.0
"""One step of a custom loop: the user's `step_fn` on every replica, traced once, what it returns summed up."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from dtjob_trainer.engines import collectives
from dtjob_trainer.engines.feed import Feed
from dtjob_trainer.engines.handed_out import HandedOut
from dtjob_trainer.errors import StepError
from dtjob_trainer.models.cuts import setting
from dtjob_trainer.models.gradients import indexed_slices
from dtjob_trainer.strategies.collective import Group

Values = dict[str, float]


class Steps:
    """Runs `step_fn` on every replica of a synchronous strategy, or in one process."""

    def __init__(self, step_fn: Callable[[Any], Any], feed: Feed, group: Group) -> None:
        self._group = group
        # a function of its own would hide the replicas from the optimizer inside (merge_call)
        body = getattr(step_fn, "python_function", step_fn)

        def of_replica(batch: Any) -> dict[str, Any]:
            with setting(indexed_slices.batch_of_step, batch):
                return _named(body(batch))

        def step(inputs: Any) -> Any:
            results = feed.run(of_replica, inputs, group)
            parts = {name: group.strategy.experimental_local_results(value) for name, value in results.items()}
            return {name: tf.add_n(part) for name, part in parts.items()}

        self._function = tf.function(step, input_signature=[feed.signature])
        self._last: Any = {}

    def trace(self) -> Any:
        """Trace the step before anything is trained; the traced function (a `ConcreteFunction`).

        Collective. Raises StepError for results that cannot be reported, and if a task has another step.
        """
        concrete = self._function.get_concrete_function()
        collectives.see_alike(self._group, concrete.graph)
        for name, spec in concrete.structured_outputs.items():
            if spec.shape.rank != 0:
                raise StepError(
                    f"step_fn returned {name!r} of shape {spec.shape}; return nothing, a scalar loss, or a dict of "
                    "scalars: this replica's part of each, as they are summed over the replicas"
                )
        return concrete

    def run(self, inputs: Any) -> None:
        """Train one step; returns before it is done where that is possible."""
        self._last = self._function(inputs)

    def wait(self) -> None:
        """Return when all steps so far are done."""

    def outstanding(self) -> int:
        """How many of the steps asked for are not done, where they are handed out. Any thread may ask."""
        return 0

    def values(self) -> Values:
        """What `step_fn` returned in the last step that is done, summed over this task's replicas."""
        return {name: float(value) for name, value in self._last.items()}


class ScheduledSteps(Steps):
    """The same under ParameterServer: a step goes to whichever worker is free."""

    def __init__(self, step_fn: Callable[[Any], Any], feed: Feed, group: Group) -> None:
        super().__init__(step_fn, feed, group)
        self._steps = HandedOut(group.strategy)

    def run(self, inputs: Any) -> None:
        """Hand out one step; returns before it is done."""
        self._steps.schedule(self._function, inputs)

    def wait(self) -> None:
        """Return when every step handed out is done."""
        self._steps.wait()

    def outstanding(self) -> int:
        """Steps handed out that are not done."""
        return self._steps.outstanding()

    def values(self) -> Values:
        """What `step_fn` returned in the last step that is done; empty before the first step."""
        return {name: float(value) for name, value in (self._steps.last_done() or {}).items()}


def _named(result: Any) -> dict[str, Any]:
    """What `step_fn` returned, as a dict of tensors (float32)."""
    if result is None:
        return {}
    named = result if isinstance(result, Mapping) else {"loss": result}
    return {str(name): tf.cast(value, tf.float32) for name, value in named.items()}
