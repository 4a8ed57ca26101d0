# SPDX-License-Identifier: Apache-2.0
"""Steps that the chief of ParameterServer hands out to workers, and the results of those that are done."""

import time
from collections import deque
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.frameworks import coordinator

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


class HandedOut:
    """A ClusterCoordinator that never has more than AHEAD steps for each worker waiting.

    It waits for no step to be done, so workers run side by side however long their steps take.
    """

    def __init__(self, strategy: tf.distribute.ParameterServerStrategy) -> None:
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._queue = coordinator.queue_of(self._coordinator)
        workers = coordinator.workers_of(strategy)
        self._most = AHEAD * workers
        self._traced: dict[int, Any] = {}
        """By the id of a function that was handed out, what was traced of it."""
        self._results = Results(self._most + workers)

    def schedule(self, function: Any, inputs: Any) -> None:
        """Have a free worker call `function`, a `tf.function` with an input signature, with the parts of `inputs`.

        Waits while there are enough steps that no worker has begun. Raises the error of an earlier step.
        """
        tensors = tuple(_tensors(part) for part in inputs if part is not None)
        coordinator.wait_for_room(self._queue, self._most)
        # in each call of a tf.function TensorFlow looks at the arguments, which takes longer than to hand the step out
        result = self._coordinator.schedule(self._traced.get(id(function), function), args=(tensors,))
        if id(function) not in self._traced:
            self._traced[id(function)] = function.get_concrete_function()
        self._results.add(result, time.monotonic())

    def last_done(self) -> Any:
        """What a step returned, as NumPy has it, and None if none was handed out: the last one, if it is done.

        Else it is a step that began up to KEPT_SECONDS before the newest that is done. Waits only if no step is done.
        Raises the error of that step.
        """
        result = self._results.last_done()
        return None if result is None else result.fetch()

    def outstanding(self) -> int:
        """How many steps are not done. Any thread may ask."""
        return coordinator.outstanding(self._queue)

    def wait(self) -> None:
        """Return when all steps are done. Raises the error of a step."""
        self._coordinator.join()

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return bool(self._coordinator.done())


def _tensors(part: Any) -> Any:
    """Tensors for the arrays of a part. Most parts are one array: to look for others in it takes longer."""
    return tf.constant(part) if isinstance(part, np.ndarray) else keras.tree.map_structure(tf.convert_to_tensor, part)
