# SPDX-License-Identifier: Apache-2.0
"""A job to its end: the logs of its pods as they grow, and each of its changes."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

from dtjob.api.names import KIND
from dtjob.api.phase import ENDED
from dtjob.client.changes import batches, changes
from dtjob.client.changes import follow as take_all
from dtjob.client.cluster import Cluster
from dtjob.client.errors import TEMPORARY, ClientError, Ended, NotFound, NotReached
from dtjob.client.patience import Patience
from dtjob.client.verbs.logs import ALL, STAMPED, How, Line, name_of, parted
from dtjob.client.verbs.pods import container_state, in_order, selector
from dtjob.client.verbs.words import is_stuck, phase_of

Object = Mapping[str, Any]
Sink = Callable[[Line], object]
"""Takes the lines of all tasks, from any thread."""
MOST_TAILS = 50
"""Logs that are followed at the same time, each with a connection of its own."""
Seen = Line | Object | None
"""A line of a log, the job after a change, or None once it is deleted."""
_MOST = 1000
"""Lines that are held while nobody reads them."""
_LOOK_SECONDS = 0.2


def follow(cluster: Cluster, name: str, task: str | None = None, how: How = ALL) -> Generator[Seen]:
    """Lines and changes as they come, until the job has ended, is deleted, or waits for its user. Raises ClientError.

    Whoever leaves the loop ends the reading too.
    """
    own = Cluster(cluster.connection.beside(), cluster.namespace)
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


class Tails:
    """Follows the logs of the pods of a job, also of those that come later, each in a thread of its own. The first
    MOST_TAILS are followed; another takes the place of one that has ended."""

    def __init__(self, cluster: Cluster, job: str, sink: Sink, task: str | None = None, how: How = ALL) -> None:
        self._cluster, self._job, self._sink, self._task, self._how = cluster, job, sink, task, how
        self._threads: dict[str, threading.Thread] = {}
        self._waiting: dict[str, Object] = {}
        self._running = 0
        self._has_said = False
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin, in the background. Raises ClientError if the pods may not be listed."""
        found = batches(self._cluster, "Pod", selector(self._job), stopping=self._stopping)
        self._take(next(found, []))
        threading.Thread(target=take_all, args=(found, self._take, self._lost), daemon=True, name="pods").start()

    def finish(self, seconds: float = 10.0) -> None:
        """Look for pods once more, and wait until all logs have ended, for so long."""
        with contextlib.suppress(*TEMPORARY):
            self._take([("ADDED", pod) for pod in self._cluster.list("Pod", selector(self._job))])
        self._stopping.set()
        until = time.monotonic() + seconds
        for thread in self.threads():
            thread.join(max(0.0, until - time.monotonic()))

    def stop(self) -> None:
        """Begin nothing more. Threads end with their calls."""
        self._stopping.set()

    def threads(self) -> Sequence[threading.Thread]:
        """The threads that read a log."""
        with self._lock:
            return list(self._threads.values())

    def _lost(self, error: ClientError) -> None:
        self._say(f"logs of new pods are not followed any more: {error}")

    def _take(self, batch: Sequence[tuple[str, Object]]) -> None:
        """Follow the pods whose container has started, as far as there are places."""
        for change, pod in batch:
            has_log = in_order([pod], self._task) and container_state(pod)[0] != "waiting"
            with self._lock:
                if has_log and change != "DELETED" and pod["metadata"]["uid"] not in self._threads:
                    self._waiting[pod["metadata"]["uid"]] = pod
                    self._begin_waiting()

    def _begin_waiting(self) -> None:
        """Follow pods that wait, as many as there are places. The caller has the lock."""
        while self._waiting and self._running < MOST_TAILS:
            uid, pod = next(iter(self._waiting.items()))
            del self._waiting[uid]
            self._running += 1
            thread = threading.Thread(target=self._follow, args=(pod,), daemon=True, name=pod["metadata"]["name"])
            self._threads[uid] = thread
            thread.start()
        if self._waiting and not self._has_said:
            self._has_said = True
            self._say(f"the logs of {MOST_TAILS} pods are followed; for another task, give --task, such as worker-7")

    def _follow(self, pod: Object) -> None:
        try:
            self._print_all(pod)
        finally:
            with self._lock:
                self._running -= 1
                self._begin_waiting()

    def _print_all(self, pod: Object) -> None:
        """Print each line once. A stream that breaks goes on after the last line."""
        path, last = f"{self._cluster.path('Pod')}/{pod['metadata']['name']}/log", ""
        trying = self._patience()
        while True:
            query, printed = ({**STAMPED, "sinceTime": last} if last else self._how.query), last
            try:
                with self._cluster.connection.stream(path, {**query, "follow": True}) as lines:
                    for line in lines:
                        trying.answered()
                        at, text = parted(line)
                        if not at or at > printed:  # the API server answers from the whole second on
                            last = max(last, at)
                            self._sink(Line(name_of(pod), at, text))
                if self._stopping.is_set() or not self._runs(pod):
                    return
                trying.wait(NotReached(f"the log of {name_of(pod)} broke off"))
            except TEMPORARY as error:
                trying.wait(error)
                if self._stopping.is_set():
                    return
            except (NotFound, Ended):
                return
            except ClientError as error:
                self._say(f"the log of {name_of(pod)} is not followed any more: {error}")
                return

    def _runs(self, pod: Object) -> bool:
        """Whether more lines may come. A log that breaks off looks like one that ends."""
        found = self._cluster.find("Pod", pod["metadata"]["name"])
        is_same = found is not None and found["metadata"]["uid"] == pod["metadata"]["uid"]
        return found is not None and is_same and container_state(found)[0] == "running"

    def _patience(self) -> Patience:
        return Patience(self._cluster.connection.outage, sleep=self._stopping.wait)

    def _say(self, text: str) -> None:
        self._cluster.connection.outage.say(text)
