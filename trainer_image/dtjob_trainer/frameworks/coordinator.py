# SPDX-License-Identifier: Apache-2.0
"""Private parts of TensorFlow's ClusterCoordinator: the queue of steps that no worker has begun, and what is done."""

from importlib import import_module
from typing import Any

from dtjob_trainer.frameworks.hooks import read

_CANNOT = "hand out steps of ParameterServer"
_QUEUE = ("_queue", "_queue_lock", "_queue_free_slot_condition", "_inflight_closure_count", "_error")
_OF_WORKERS = ("closure_execution", "remote_value_fetch")
"""The metrics of TensorFlow that count for how long workers run steps, with all that passes between machines."""
_LOOK_SECONDS = 0.5
"""How often to look whether a step has failed, while none begins. TensorFlow wakes nobody who waits for room."""


def queue_of(coordinator: Any) -> Any:
    """The queue of the steps of a coordinator."""
    queue = read(read(coordinator, "_cluster", _CANNOT), "closure_queue", _CANNOT)
    for name in _QUEUE:
        read(queue, name, _CANNOT)
    return queue


def outstanding(queue: Any) -> int:
    """How many steps are not done. Any thread may ask. TensorFlow says only whether there are any (`done`)."""
    return int(queue._queue.qsize() + queue._inflight_closure_count)


def wait_for_room(queue: Any, most: int) -> None:
    """Return while fewer than `most` steps wait for a worker. Else return when half of them do, or if one has failed.

    So several steps are handed out at once, in half the processor time: between two steps, other processes take the
    processor's caches.

    TensorFlow's own limit of its queue does not serve: a worker that comes back puts its step into the queue again,
    and would wait there for room for ever.
    """
    with queue._queue_lock:
        if queue._queue.qsize() < most:
            return
        while queue._queue.qsize() > most // 2 and queue._error is None:
            queue._queue_free_slot_condition.wait(_LOOK_SECONDS)


def is_done(result: Any) -> bool:
    """Whether a RemoteValue has its value. Its public methods all wait for it."""
    return bool(result._status_available_event.is_set())


def workers_of(strategy: Any) -> int:
    """How many workers a strategy of parameter servers has."""
    return int(read(strategy, "_num_workers", _CANNOT))


def worked_seconds(coordinator: Any) -> float | None:
    """For how many seconds the workers of all coordinators have run steps; each counts. None: a worker is away."""
    workers = read(read(coordinator, "_cluster", _CANNOT), "workers", _CANNOT)
    if any(read(worker, "_is_dead_with_error", _CANNOT) for worker in workers):
        return None
    metrics = import_module("tensorflow.python.distribute.coordinator.metric_utils")
    summary = read(metrics, "get_metric_summary", _CANNOT)
    return float(sum(summary(name)["sum"] for name in _OF_WORKERS))
