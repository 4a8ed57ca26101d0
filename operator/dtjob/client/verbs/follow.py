# SPDX-License-Identifier: Apache-2.0
"""A job to its end: its logs, and each of its changes."""

import contextlib
import queue
import threading
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from dtjob.api.names import KIND
from dtjob.api.phase import ENDED
from dtjob.client.changes import changes
from dtjob.client.cluster import Cluster
from dtjob.client.connection import Connection
from dtjob.client.verbs.logs import ALL, How, Line
from dtjob.client.verbs.tails import Tails
from dtjob.client.verbs.words import is_stuck, phase_of

Object = Mapping[str, Any]
Seen = Line | Object | None
"""A line of a log, the job after a change, or None once it is deleted."""
_MOST = 1000
"""Lines that are held while nobody reads them."""
_LOOK_SECONDS = 0.2


def follow(cluster: Cluster, name: str, task: str | None = None, how: How = ALL) -> Generator[Seen]:
    """Lines and changes as they come, until the job has ended, is deleted, or waits for its user. Raises ClientError.

    Whoever leaves the loop ends the reading too.
    """
    own = Cluster(Connection(cluster.connection.access), cluster.namespace)
    found = _Found()
    threading.Thread(target=_read, args=(own, name, task, how, found), daemon=True, name=name).start()
    try:
        yield from found
    finally:
        found.close()
        own.connection.end()


def _read(cluster: Cluster, name: str, task: str | None, how: How, found: "_Found") -> None:
    tails = Tails(cluster, name, found.put, task, how)
    try:
        tails.start()
        for job in changes(cluster, KIND, name):
            found.put(job)
            if job is None or is_stuck(job):
                return
            if phase_of(job) in ENDED:
                tails.finish()
                return
    except Exception as error:  # whoever reads is to learn of it, whatever it is
        found.put(error)
    finally:
        tails.stop()
        found.put(_End())


class _End(Exception):
    """Nothing follows."""


class _Found:
    """What several threads have found, one after the other. Threads wait while too much is not read."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Seen | Exception] = queue.Queue(_MOST)
        self._closed = threading.Event()

    def put(self, found: Seen | Exception) -> None:
        """Add something. An exception is raised where it is read."""
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(found, timeout=_LOOK_SECONDS)
                return

    def close(self) -> None:
        """Nobody reads any more: take nothing."""
        self._closed.set()

    def __iter__(self) -> Iterator[Seen]:
        while not isinstance(found := self._queue.get(), _End):
            if isinstance(found, Exception):
                raise found
            yield found
