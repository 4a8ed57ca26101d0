# SPDX-License-Identifier: Apache-2.0
"""Steps under ParameterServer: the chief hands them to whichever worker is free."""

import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data import elements
from dtjob_trainer.data.batches import Source
from dtjob_trainer.data.stream import Portion
from dtjob_trainer.engines.engine import Engine, Phase, Work
from dtjob_trainer.frameworks import coordinator
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.placement.shard import Shard
from dtjob_trainer.strategies.collective import Group

AHEAD = 4
"""The most steps for each worker that wait until it is free. Their batches are in the chief's memory."""
KEPT_SECONDS = 0.1
"""The least time between two steps whose results are kept."""


class Results:
    """The results of the last steps, to find the newest that is done.

    Not all are kept: TensorFlow calls the worker to free a result that was kept, which takes 2 ms beside steps of 7.
    """

    def __init__(self, most_not_done: int) -> None:
        """`most_not_done`: the most steps that are handed out and not done."""
        self._kept: deque[Any] = deque(maxlen=most_not_done + 1)
        """In their order. Each keeps its batch in memory. At least one is done if it is full."""
        self._kept_at = -KEPT_SECONDS
        self._newest: Any = None

    def add(self, result: Any, now: float) -> None:
        """Add the result (a RemoteValue) of a step that was handed out at `now` (s)."""
        self._newest = result
        if now - self._kept_at < KEPT_SECONDS:
            return
        self._kept.append(result)
        self._kept_at = now
        while len(self._kept) > 1 and coordinator.is_done(self._kept[1]):
            self._kept.popleft()

    def last_done(self) -> Any:
        """The result of the last step if that is done, else the newest that is kept and done, else the oldest kept.

        None before the first step.
        """
        if self._newest is None:
            return None
        return next(filter(coordinator.is_done, [self._newest, *reversed(self._kept)]), self._kept[0])


class ParameterServerEngine(Engine):
    """Runs steps of a built model on ParameterServer's workers: none waits for the one before it.

    Of the `watched` phases, the steps of a call are done when it returns, so that callbacks see each in its order.

    Each step is given its examples by the chief: steps are not bound to workers, so this is what makes every example
    count exactly once. There are never more than AHEAD steps for each worker waiting.
    """

    exact = False

    def __init__(self, trained: TrainedModel, group: Group, watched: Collection[Phase] = ()) -> None:
        super().__init__(trained, group, watched)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(group.strategy)
        self._queue = coordinator.queue_of(self._coordinator)
        self._workers = workers = coordinator.workers_of(group.strategy)
        self.batches_ahead = AHEAD * workers
        self._phase: Phase = "train"
        self._worked, self._seen = 0.0, coordinator.worked_seconds(self._coordinator) or 0.0
        phases: tuple[Phase, ...] = "train", "evaluate"
        self._results = {phase: Results(self.batches_ahead + workers) for phase in phases}
        self._traced: dict[int, Any] = {}  # by the id of a function that was handed out, what was traced of it
        if watched:
            self.steps_per_call = trained.steps_per_call

    def _run(self, phase: Phase, source: Source, work: Work) -> tuple[Results, int]:
        """Waits while there are enough steps that no worker has begun. Raises the error of an earlier step."""
        assert not isinstance(work, Portion)
        function = self._function(phase, source)
        if phase != self._phase:  # the steps of the other phase are done
            self.busy(source, 0)
            self._phase = phase
        for batch in work:
            # most parts are one array: to look for others in it takes longer
            parts = (part for part in batch.inputs if part is not None)
            tensors = tuple(tf.constant(each) if isinstance(each, np.ndarray) else _tensors(each) for each in parts)
            coordinator.wait_for_room(self._queue, self.batches_ahead)
            # of a tf.function TensorFlow looks at the arguments in each call, which takes longer than to hand it out
            result = self._coordinator.schedule(self._traced.get(id(function), function), args=(tensors,))
            if id(function) not in self._traced:
                self._traced[id(function)] = function.get_concrete_function()
            self._results[phase].add(result, time.monotonic())
        if phase in self.watched:
            self.wait()
        return self._results[phase], len(work)

    def wait(self) -> None:
        """Return when every step handed out is done. Raises the error of a step."""
        self._coordinator.join()

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return bool(self._coordinator.done())

    def outstanding(self) -> int:
        """Steps handed out that are not done."""
        return coordinator.outstanding(self._queue)

    def busy(self, source: Source, step: int) -> float | None:
        """For how many seconds the workers have run steps of training, on average. None: a worker is away."""
        seconds = coordinator.worked_seconds(self._coordinator)
        if seconds is None:
            return None
        self._worked += seconds - self._seen if self._phase == "train" else 0.0
        self._seen = seconds
        return self._worked / self._workers

    def _result(self, step: Results) -> Any:
        """What the last step returned, if it is done, as NumPy has it; None if none was handed out.

        Else it is a step that began up to KEPT_SECONDS before the newest that is done. Waits only if no step is done.
        Raises the error of that step.
        """
        result = step.last_done()
        return None if result is None else result.fetch()

    def _make_function(self, phase: Phase, body: Callable[..., Any], source: Source) -> Any:
        def step(inputs: Any) -> Any:
            def replica() -> Any:
                total = elements.rows_within(inputs)  # counted there: each argument is one more to send
                return body(Shard(1, total, total, False), *source.decode(*inputs))

            strategy = self.group.strategy
            return strategy.experimental_local_results(strategy.run(replica))[0]

        # the signature leaves the batch dimension open, so that the last batch is not traced again
        return tf.function(step, autograph=self.custom, input_signature=[source.input_spec()])


def _tensors(part: Any) -> Any:
    return keras.tree.map_structure(tf.convert_to_tensor, part)
