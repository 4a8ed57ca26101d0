# SPDX-License-Identifier: Apache-2.0
"""`dtjob logs`: the logs of all tasks at once, each line with its task."""

import contextlib
import heapq
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from dtjob.api.names import TRAINING_CONTAINER
from dtjob.cli.watching.pods import attempt_of, container_state, in_order, newest, selector, task_of
from dtjob.client.cluster import Cluster
from dtjob.client.errors import TEMPORARY, ApiError, ClientError, Ended, NotFound, Unavailable, Unreachable
from dtjob.client.patience import Patience
from dtjob.local.display.terminal_line import plain, seen, task_head

Object = Mapping[str, Any]
COLOURS = ("36", "32", "33", "35", "34", "96", "92", "93", "95", "94")
_QUERY: dict[str, Any] = {"container": TRAINING_CONTAINER, "timestamps": True}
_TOO_OLD = 410
MOST_TAILS = 50
"""Logs that are followed at the same time, each with a connection of its own."""
READER_GONE = 1
_PIECE = 16384
"""Bytes of each log that are held while logs are merged."""


@dataclass(frozen=True)
class How:
    """Which lines are printed, and how. `tail`: only the last ones of each pod. `since`: seconds before now."""

    previous: bool = False
    tail: int | None = None
    since: float | None = None
    timestamps: bool = False

    @property
    def query(self) -> dict[str, Any]:
        """What the API server is asked for."""
        lines = {} if self.tail is None else {"tailLines": self.tail}
        return {**_QUERY, **lines, **({} if self.since is None else {"sinceSeconds": max(1, round(self.since))})}

    def line(self, when: str, text: str) -> str:
        """A line as it is printed."""
        return f"{when} {text}" if self.timestamps else text


ALL = How()


class Sink(Protocol):
    """Takes the lines of all tasks, from any thread."""

    def line(self, task: str, text: str) -> None:
        """Take one line of a task."""


class Printer:
    """Prints lines of several tasks, one at a time, coloured on a terminal."""

    def __init__(self, out: TextIO, coloured: bool | None = None) -> None:
        self._out = out
        self._coloured = out.isatty() if coloured is None else coloured
        self._lock = threading.Lock()
        self._colour: dict[str, str] = {}

    def line(self, task: str, text: str) -> None:
        """Print one line of a task."""
        with self._lock:
            colour = self._colour.setdefault(task, COLOURS[len(self._colour) % len(COLOURS)])
            head = task_head(task)
            text = seen(text) if self._coloured else plain(seen(text))
            try:
                self._out.write(f"\x1b[{colour}m{head}\x1b[0m{text}\n" if self._coloured else f"{head}{text}\n")
                self._out.flush()
            except BrokenPipeError:  # `| head` has ended. No exception of this thread would end the program.
                os._exit(READER_GONE)


def name_of(pod: Object) -> str:
    """The task, with the attempt if it is not the first."""
    attempt = attempt_of(pod)
    return f"{task_of(pod)}.{attempt}" if attempt else task_of(pod)


def print_logs(cluster: Cluster, job: str, printer: Sink, task: str | None, how: How = ALL) -> int:
    """Print the logs so far, in the order of time. Returns how many pods have one.

    They are kept in a file meanwhile, one after the other, and merged from there: they may be larger than the memory.
    """
    pods = in_order(cluster.list("Pod", selector(job)), task)
    if how.previous:
        current = {pod["metadata"]["uid"] for pod in newest(pods)}
        pods = [pod for pod in pods if pod["metadata"]["uid"] not in current]
    with tempfile.TemporaryFile() as file:
        logs: list[Iterator[tuple[str, int, str, str]]] = []
        for pod in pods:
            begin = file.tell()
            if _copied(cluster, pod, how.query, file.write):
                logs.append(_stamped(file.fileno(), begin, file.tell(), len(logs), name_of(pod)))
        file.flush()
        for when, _, name, line in heapq.merge(*logs):
            printer.line(name, how.line(when, line))
    return len(logs)


def _copied(cluster: Cluster, pod: Object, query: dict[str, Any], sink: Callable[[bytes], object]) -> bool:
    """Whether the pod has a log, which `sink` has got."""
    try:
        cluster.copy_log(pod["metadata"]["name"], sink, **query)
    except NotFound:
        return False
    except Unavailable as error:  # its node does not answer
        cluster.connection.outage.say(f"the log of {name_of(pod)} cannot be read: {error}")
        return False
    except ApiError as error:
        if error.code == 400:  # its container has not started
            return False
        raise
    return True


def _stamped(file: int, begin: int, end: int, at: int, name: str) -> Iterator[tuple[str, int, str, str]]:
    """Each line of a part of a file: its time, the number and the name of the log, the text. Times never go back."""
    last = ""
    for line in _lines(file, begin, end):  # a progress bar has \r in its line
        when, _, rest = line.decode(errors="replace").partition(" ")
        last = max(last, when)
        yield last, at, name, rest


def _lines(file: int, begin: int, end: int) -> Iterator[bytes]:
    rest = b""
    while begin < end and (piece := os.pread(file, min(_PIECE, end - begin), begin)):
        begin += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        yield rest


class Tails:
    """Follows the logs of the pods of a job, also of those that come later, each in a thread of its own. The first
    MOST_TAILS are followed; another takes the place of one that has ended."""

    def __init__(self, cluster: Cluster, job: str, printer: Sink, task: str | None = None, how: How = ALL) -> None:
        self._cluster, self._job, self._printer, self._task, self._how = cluster, job, printer, task, how
        self._threads: dict[str, threading.Thread] = {}
        self._waiting: dict[str, Object] = {}
        self._running = 0
        self._has_said = False
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin, in the background. Raises ClientError if the pods may not be listed."""
        trying = self._patience()
        while True:
            try:
                self._version = self._look()
                break
            except Unavailable as error:
                trying.wait(error)
        threading.Thread(target=self._watch, daemon=True, name="pods").start()

    def finish(self, seconds: float = 10.0) -> None:
        """Look for pods once more, and wait until all logs have ended, for so long."""
        with contextlib.suppress(*TEMPORARY):
            self._look()
        self._stopping.set()
        until = time.monotonic() + seconds
        for thread in self.threads():
            thread.join(max(0.0, until - time.monotonic()))

    def stop(self) -> None:
        """Begin nothing more. Threads end with their calls."""
        self._stopping.set()

    def threads(self) -> Sequence[threading.Thread]:
        """Those that read a log."""
        with self._lock:
            return list(self._threads.values())

    def _look(self) -> str:
        pods, version = self._cluster.listed("Pod", selector(self._job))
        for pod in pods:
            self._take(pod)
        return version

    def _watch(self) -> None:
        trying = self._patience()
        while not self._stopping.is_set():
            try:
                for _, pod in self._cluster.watch("Pod", self._version, selector(self._job)):
                    self._version = str(pod["metadata"]["resourceVersion"])
                    self._take(pod)
                self._version = self._look()
                trying.answered()
            except ApiError as error:
                if not isinstance(error, Unavailable) and error.code != _TOO_OLD:
                    self._say(f"logs of new pods are not followed any more: {error}")
                    return
                trying.wait(error)
                self._version = "0"
            except Ended:
                return
            except ClientError as error:
                trying.wait(error)
                self._version = "0"

    def _take(self, pod: Object) -> None:
        """Follow the pod once its container has started and there is a place."""
        uid = pod["metadata"]["uid"]
        if not in_order([pod], self._task) or container_state(pod)[0] == "waiting":
            return
        with self._lock:
            if uid in self._threads:
                return
            self._waiting[uid] = pod
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
            query, printed = ({**_QUERY, "sinceTime": last} if last else self._how.query), last
            try:
                with self._cluster.connection.stream(path, {**query, "follow": True}) as lines:
                    for line in lines:
                        trying.answered()
                        at, _, text = line.decode(errors="replace").partition(" ")
                        if at > printed:  # the API server answers from the whole second on
                            last = max(last, at)
                            self._printer.line(name_of(pod), self._how.line(at, text))
                if self._stopping.is_set() or not self._runs(pod):
                    return
                trying.wait(Unreachable(f"the log of {name_of(pod)} broke off"))
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


def standard_output() -> Printer:
    """A printer of standard output."""
    return Printer(sys.stdout)
