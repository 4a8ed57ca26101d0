# SPDX-License-Identifier: Apache-2.0
"""Steps under ParameterServer: the chief hands them to whichever worker is free."""

from collections.abc import Callable, Collection
from typing import Any

import tensorflow as tf

from dtjob_trainer.data import elements
from dtjob_trainer.data.batches import Source
from dtjob_trainer.data.stream import Portion
from dtjob_trainer.engines.engine import Engine, Phase, Work
from dtjob_trainer.engines.handed_out import AHEAD, HandedOut
from dtjob_trainer.frameworks import coordinator
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.placement.shard import Shard
from dtjob_trainer.strategies.collective import Group


class ParameterServerEngine(Engine):
    """Runs steps of a built model on ParameterServer's workers: none waits for the one before it.

    Of the `watched` phases, the steps of a call are done when it returns, so that callbacks see each in its order.

    Each step is given its examples by the chief: steps are not bound to workers, so this is what makes every example
    count exactly once.
    """

    exact = False

    def __init__(self, trained: TrainedModel, group: Group, watched: Collection[Phase] = ()) -> None:
        super().__init__(trained, group, watched)
        self._steps = {"train": HandedOut(group.strategy), "evaluate": HandedOut(group.strategy)}
        """By phase; TensorFlow has one coordinator for both, so either waits for all."""
        self.batches_ahead = AHEAD * coordinator.workers_of(group.strategy)
        if watched:
            self.steps_per_call = trained.steps_per_call

    def _run(self, phase: Phase, source: Source, work: Work) -> tuple[HandedOut, int]:
        assert not isinstance(work, Portion)
        steps = self._steps[phase]
        for batch in work:
            steps.schedule(self._function(phase, source), batch.inputs)
        if phase in self.watched:
            steps.wait()
        return steps, len(work)

    def wait(self) -> None:
        """Return when every step handed out is done."""
        self._steps["train"].wait()

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return self._steps["train"].done()

    def outstanding(self) -> int:
        """Steps handed out that are not done."""
        return self._steps["train"].outstanding()

    def _result(self, step: HandedOut) -> Any:
        """Of the last step that is done; steps that run are not waited for."""
        return step.last_done()

    def _make_function(self, phase: Phase, body: Callable[..., Any], source: Source) -> Any:
        def step(inputs: Any) -> Any:
            def replica() -> Any:
                total = elements.rows_within(inputs)  # counted there: each argument is one more to send
                return body(Shard(1, total, total, False), *source.decode(*inputs))

            strategy = self.group.strategy
            return strategy.experimental_local_results(strategy.run(replica))[0]

        # the signature leaves the batch dimension open, so that the last batch is not traced again
        return tf.function(step, autograph=self.custom, input_signature=[source.input_spec()])
