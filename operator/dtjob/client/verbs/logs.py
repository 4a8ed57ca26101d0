# SPDX-License-Identifier: Apache-2.0
"""The logs of all tasks so far, merged by time."""

import heapq
import os
import re
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from dtjob.api.names import TRAINING_CONTAINER
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Refused, Unavailable
from dtjob.client.verbs.pods import attempt_of, in_order, newest, selector, task_of

Object = Mapping[str, Any]
STAMPED: Mapping[str, Any] = {"container": TRAINING_CONTAINER, "timestamps": True}
"""What the API server is asked for: each line begins with its time."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT")
_PIECE = 16384
"""Bytes of each log that are held while logs are merged."""


class Line(NamedTuple):
    """A line of a log. `task`: such as worker-1, and worker-1.2 for its third pod. `time`: as the API server has it."""

    task: str
    time: str
    text: str


@dataclass(frozen=True)
class How:
    """Which lines.

    `previous`: of replaced pods. `attempt`: of this attempt. `tail`: the last ones of each pod. `since`: seconds before
    now.
    """

    previous: bool = False
    attempt: int | None = None
    tail: int | None = None
    since: float | None = None

    @property
    def query(self) -> Mapping[str, Any]:
        """What the API server is asked for."""
        lines = {} if self.tail is None else {"tailLines": self.tail}
        return {**STAMPED, **lines, **({} if self.since is None else {"sinceSeconds": max(1, round(self.since))})}


ALL = How()


def name_of(pod: Object) -> str:
    """The task, with the attempt if it is not the first."""
    return name_of_attempt(task_of(pod), attempt_of(pod))


def name_of_attempt(task: str, attempt: int) -> str:
    """What stands before the lines of this attempt at a task, such as worker-0.1."""
    return f"{task}.{attempt}" if attempt else task


def logs(cluster: Cluster, job: str, task: str | None = None, how: How = ALL) -> Generator[Line]:
    """The lines of a task, of a role or of all tasks so far, in the order of time. Raises ClientError, BadInput.

    Logs are kept in a file meanwhile, one after the other, and merged from there: they may be larger than the memory.
    """
    pods = in_order(cluster.list("Pod", selector(job)), task)
    if how.previous:
        current = {pod["metadata"]["uid"] for pod in newest(pods)}
        pods = [pod for pod in pods if pod["metadata"]["uid"] not in current]
    if how.attempt is not None:
        pods = [pod for pod in pods if attempt_of(pod) == how.attempt]
    with tempfile.TemporaryFile() as file:
        parts: list[Iterator[Line]] = []
        for pod in pods:
            begin = file.tell()
            _copy(cluster, pod, how.query, file.write)
            parts.append(_stamped(file.fileno(), begin, file.tell(), name_of(pod)))
        file.flush()
        yield from heapq.merge(*parts, key=lambda line: line.time)


def _copy(cluster: Cluster, pod: Object, query: Mapping[str, Any], sink: Callable[[bytes], object]) -> None:
    """Give the log of the pod to `sink`, if it has one."""
    try:
        cluster.log(pod["metadata"]["name"], sink, **query)
    except Unavailable as error:  # its node does not answer
        cluster.connection.outage.say(f"the log of {name_of(pod)} cannot be read: {error}")
    except Refused as error:
        if error.code not in (400, 404):  # its container has not started, or the pod is gone
            raise


def _stamped(file: int, begin: int, end: int, task: str) -> Iterator[Line]:
    """Each line of a part of a file. Times never go back."""
    last = ""
    for line in _lines(file, begin, end):  # a progress bar has \r in its line
        when, text = parted(line)
        last = max(last, when)
        yield Line(task, last, text)


def parted(line: bytes) -> tuple[str, str]:
    """The time and the text of a line. A line of the kubelet itself, such as an error, has no time."""
    found = line.decode(errors="replace")
    when, _, text = found.partition(" ")
    return (when, text) if _TIME.match(when) else ("", found)


def _lines(file: int, begin: int, end: int) -> Iterator[bytes]:
    parts: list[bytes] = []
    while begin < end and (piece := os.pread(file, min(_PIECE, end - begin), begin)):
        begin += len(piece)
        first, *others = piece.split(b"\n")
        parts.append(first)
        for line in others:
            yield b"".join(parts)
            parts = [line]
    if rest := b"".join(parts):
        yield rest
