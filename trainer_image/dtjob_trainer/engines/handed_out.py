"""Steps that the chief of ParameterServer hands out to workers, and the results of those that are done."""

from __future__ import annotations

from collections import deque
from typing import Any

import tensorflow as tf

AHEAD = 4
"""Steps for each worker that wait until it is free. Their batches are in the chief's memory."""
_LOOK_SECONDS = 0.5
"""How often to look whether a step has failed, while none begins. TensorFlow wakes nobody who waits for room."""


class HandedOut:
    """A ClusterCoordinator that never has more than AHEAD steps for each worker waiting.

    It waits for no step to be done, so workers run side by side however long their steps take.
    """

    def __init__(self, strategy: tf.distribute.ParameterServerStrategy) -> None:
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        workers: int = strategy._num_workers
        self._most = AHEAD * workers
        self._traced: dict[int, Any] = {}
        """By the id of a function that was handed out, what was traced of it."""
        self._results: deque[Any] = deque(maxlen=self._most + workers + 1)
        """Of the last steps, in their order. Each keeps its batch in memory. At least one is done if it is full."""

    def schedule(self, function: Any, args: tuple[Any, ...]) -> None:
        """Have a free worker call `function`, a `tf.function` with an input signature, with `args`.

        Waits while there are enough steps that no worker has begun. Raises the error of an earlier step.
        """
        self._wait_for_room()
        # in each call of a tf.function TensorFlow looks at the arguments, which takes longer than to hand the step out
        result = self._coordinator.schedule(self._traced.get(id(function), function), args=args)
        if id(function) not in self._traced:
            self._traced[id(function)] = function.get_concrete_function()
        self._results.append(result)
        while len(self._results) > 1 and _is_done(self._results[1]):
            self._results.popleft()

    def last_done(self) -> Any:
        """What the newest step that is done returned, as NumPy has it; None if none was handed out.

        Waits only if no step is done. Raises the error of that step.
        """
        if not self._results:
            return None
        return next(filter(_is_done, reversed(self._results)), self._results[0]).fetch()

    def outstanding(self) -> int:
        """How many steps are not done. Any thread may ask. TensorFlow says only whether there are any (`done`)."""
        closures = self._closures
        return int(closures._queue.qsize() + closures._inflight_closure_count)

    def wait(self) -> None:
        """Return when all steps are done. Raises the error of a step."""
        self._coordinator.join()

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return bool(self._coordinator.done())

    @property
    def _closures(self) -> Any:
        return self._coordinator._cluster.closure_queue

    def _wait_for_room(self) -> None:
        """Return when fewer than the most steps wait for a worker, or when a step has failed.

        TensorFlow's own limit of its queue does not serve: a worker that comes back puts its step into the queue again,
        and would wait there for room for ever.
        """
        closures = self._closures
        with closures._queue_lock:
            while closures._queue.qsize() >= self._most and closures._error is None:
                closures._queue_free_slot_condition.wait(_LOOK_SECONDS)


def _is_done(result: Any) -> bool:
    """Whether a RemoteValue has its value. Its public methods all wait for it."""
    return bool(result._status_available_event.is_set())
