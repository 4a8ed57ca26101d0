# SPDX-License-Identifier: Apache-2.0
"""Iterators of tf.data that have been read to their end are freed beside the training, not before its next step.

tf.data tunes each iterator in a thread of its own, which sleeps for 10 ms, 20 ms, 40 ms and so on up to a minute. Who
frees the iterator wakes and joins that thread; but TensorFlow (seen in 2.21) notifies it a moment before it counts as
cancelled, and about every other time it looks too early and sleeps on to the end: an epoch of 3 s ends at 5.1 s.
"""

import queue
import threading
from typing import Any

_read_out: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
_lock = threading.Lock()
_threads: list[threading.Thread] = []


def free(held: list[Any]) -> None:
    """Have `held`, the only references to an iterator that is at its end, cleared by a thread that may wait.

    Not for an iterator that could give more: what it reads might meet the next one's, as in a cache in a file.
    """
    with _lock:
        if not _threads:
            _threads.append(threading.Thread(target=_clear_all, name="read-out", daemon=True))
            _threads[0].start()
    _read_out.put(held)


def _clear_all() -> None:
    while True:
        _read_out.get().clear()
