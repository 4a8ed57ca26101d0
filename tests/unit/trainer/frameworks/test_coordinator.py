# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.frameworks.coordinator: the chief of ParameterServer waits until workers have begun steps."""

from collections.abc import Iterator
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from dtjob_trainer.errors import FrameworkError
from dtjob_trainer.frameworks.coordinator import queue_of, wait_for_room

pytest.importorskip("tensorflow")
from tensorflow.python.distribute.coordinator.cluster_coordinator import _CoordinatedClosureQueue


@pytest.fixture
def waiting() -> Iterator[Any]:
    """TensorFlow's queue of steps, in which eight wait for a worker."""
    queue = _CoordinatedClosureQueue()
    for _ in range(8):
        queue.put(SimpleNamespace())
    yield queue
    queue.stop()


def room(queue: Any, most: int) -> Thread:
    """A thread that waits for room."""
    thread = Thread(target=wait_for_room, args=(queue, most), daemon=True)
    thread.start()
    return thread


def test_a_step_is_handed_out_at_once_while_there_is_room(waiting: Any) -> None:
    wait_for_room(waiting, 9)


def test_more_steps_are_handed_out_when_half_of_them_have_begun(waiting: Any) -> None:
    chief = room(waiting, 8)
    for _ in range(3):
        waiting.get()
    chief.join(0.1)
    assert chief.is_alive()
    waiting.get()
    chief.join(10)
    assert not chief.is_alive()


def test_a_failed_step_ends_the_wait_for_room(waiting: Any) -> None:
    chief = room(waiting, 8)
    waiting.get()
    waiting.mark_failed(ValueError("of a step"))
    chief.join(10)
    assert not chief.is_alive()


def test_a_queue_of_another_kind_is_refused_in_words(waiting: Any) -> None:
    coordinator = SimpleNamespace(_cluster=SimpleNamespace(closure_queue=waiting))
    assert queue_of(coordinator) is waiting
    del waiting._queue_free_slot_condition
    with pytest.raises(FrameworkError, match=r"_queue_free_slot_condition, so dtjob cannot hand out steps"):
        queue_of(coordinator)
