# SPDX-License-Identifier: Apache-2.0
"""A job in a cluster, as an object."""

import contextlib
import html
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtjob.api.job import KIND, Job
from dtjob.api.phase import ENDED
from dtjob.api.status.status import Status
from dtjob.cli.steering import changes as steering
from dtjob.cli.steering.fetch import fetch
from dtjob.cli.steering.helper_pod import typed
from dtjob.cli.watching.logs import Tails, print_logs
from dtjob.cli.watching.wait import NEVER, TIMEOUT, check_wanted, wait
from dtjob.cli.watching.words import phase_of, status_lines, summary
from dtjob.client.changes import changes
from dtjob.client.cluster import Cluster
from dtjob.client.connection import Connection
from dtjob.client.errors import ClientError
from dtjob.sdk.errors import JobFailed

_MOST_LINES = 1000
"""Lines of logs that are held while nobody reads them."""


class RemoteJob:
    """One job of a cluster. Every method may raise `dtjob.client.errors.ClientError`."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self.name = cluster, name

    @property
    def namespace(self) -> str:
        """The namespace of the job."""
        return self._cluster.namespace

    @property
    def manifest(self) -> Job:
        """The job as the API server has it."""
        return typed(self._get())

    @property
    def status(self) -> Status:
        """The status as the API server has it."""
        return Status.read(self._get().get("status") or {})

    def wait(self, wanted: str = "End", timeout: float | None = None) -> Status:
        """Wait until the job is so: End (a good one), Running, Suspended, Complete, Failed, FirstStep, Checkpoint or
        Deleted. Returns its status, an empty one if it is deleted.

        Raises JobFailed if it ended otherwise, and TimeoutError after so many seconds.
        """
        code, phase = wait(self._cluster, self.name, check_wanted(wanted), timeout)
        if code == TIMEOUT:
            raise TimeoutError(f"{self.name}: is {phase or 'not there'} after {timeout:g} s")
        if code == NEVER:
            found = self._cluster.find(KIND, self.name)
            raise JobFailed(f"{self.name}: {summary(found) if found else phase}")
        found = self._cluster.find(KIND, self.name)
        return Status.read((found or {}).get("status") or {})

    def logs(self, task: str | None = None, *, follow: bool = False) -> Iterator[str]:
        """The lines of all tasks, or of one, each with its task before it. `follow`: until the job has ended.

        Whoever leaves the loop ends the reading too.
        """
        cluster = Cluster(Connection(self._cluster.connection.access), self._cluster.namespace)
        lines = _Lines()
        reading = threading.Thread(target=self._read, args=(cluster, lines, task, follow), daemon=True, name=self.name)
        reading.start()
        try:
            yield from lines
        finally:
            lines.close()
            cluster.connection.end()

    def metrics(self) -> dict[str, float]:
        """The step, and the loss and the metrics of the last report."""
        progress = self.status.progress
        if progress is None:
            return {}
        return {"step": float(progress.step), **{one.name: float(one.value) for one in progress.metrics}}

    def fetch(self, *paths: str, directory: Path | str = ".", image: str | None = None) -> list[Path]:
        """Copy files of the job into a directory: its models, or these paths. Returns where they are."""
        names = fetch(self._cluster, self.name, paths, Path(directory), lambda _: None, image)
        return [Path(directory) / name for name in names]

    def suspend(self) -> None:
        """Save a checkpoint and delete the pods of the job."""
        steering.suspend(self._cluster, self.name)

    def resume(self) -> None:
        """Continue it at its last checkpoint."""
        steering.resume(self._cluster, self.name)

    def scale(self, workers: int) -> None:
        """Change the number of workers of an elastic job."""
        steering.scale(self._cluster, self.name, workers)

    def delete(self) -> None:
        """Delete the job with its pods."""
        steering.delete(self._cluster, self.name, None)

    def __repr__(self) -> str:
        return f"RemoteJob({self.namespace}/{self.name})"

    def _repr_html_(self) -> str:
        """The status, in a notebook."""
        try:
            text = "\n".join(status_lines(self._get()))
        except ClientError as error:
            text = f"{self.name}: {error}"
        return f"<pre>{html.escape(text)}</pre>"

    def _get(self) -> dict[str, Any]:
        return self._cluster.get(KIND, self.name)

    def _read(self, cluster: Cluster, lines: "_Lines", task: str | None, follow: bool) -> None:
        tails = Tails(cluster, self.name, lines, task)
        try:
            if not follow:
                print_logs(cluster, self.name, lines, task)
                return
            tails.start()
            for job in changes(cluster, KIND, self.name):
                if job is None or phase_of(job) in ENDED:
                    break
            tails.finish()
        except ClientError as error:
            lines.fail(error)
        finally:
            tails.stop()
            lines.end()


class _Lines:
    """Lines from several threads, one after the other. Threads wait while too many are not read."""

    def __init__(self) -> None:
        self._queue: queue.Queue[str | Exception | None] = queue.Queue(_MOST_LINES)
        self._closed = threading.Event()

    def line(self, task: str, text: str) -> None:
        """Add a line of a task."""
        self._put(f"{task} | {text}")

    def fail(self, error: Exception) -> None:
        """Raise this where the lines are read."""
        self._put(error)

    def end(self) -> None:
        """No line follows."""
        self._put(None)

    def close(self) -> None:
        """Nobody reads any more: take no line."""
        self._closed.set()

    def _put(self, item: str | Exception | None) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(item, timeout=0.2)
                return

    def __iter__(self) -> Iterator[str]:
        while (found := self._queue.get()) is not None:
            if isinstance(found, Exception):
                raise found
            yield found
