# SPDX-License-Identifier: Apache-2.0
"""A job in a cluster, as an object."""

import contextlib
import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtjob.api.job import KIND, Job
from dtjob.api.status.status import Status
from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError
from dtjob.client.verbs import steering
from dtjob.client.verbs.fetch import fetch
from dtjob.client.verbs.follow import follow as follow_job
from dtjob.client.verbs.helper_pod import typed
from dtjob.client.verbs.logs import Line
from dtjob.client.verbs.logs import logs as lines_of
from dtjob.client.verbs.wait import END, check_wanted, wait
from dtjob.client.verbs.words import status_lines


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

    def wait(self, wanted: str = END, timeout: float | None = None) -> Status:
        """Wait until the job is so: End (a good one), Running, Suspended, Complete, Failed, FirstStep, Checkpoint or
        Deleted. Returns its status, an empty one if it is deleted.

        Raises JobFailed if it ended otherwise, and TimeoutError after so many seconds.
        """
        found = wait(self._cluster, self.name, check_wanted(wanted), timeout)
        return Status.read((found or {}).get("status") or {})

    def logs(self, task: str | None = None, *, follow: bool = False) -> Iterator[str]:
        """The lines of all tasks, or of one, each with its task before it. `follow`: until the job has ended.

        Whoever leaves the loop ends the reading too.
        """
        read = follow_job if follow else lines_of
        with contextlib.closing(read(self._cluster, self.name, task)) as found:
            for one in found:
                if isinstance(one, Line):
                    yield f"{one.task} | {one.text}"

    def metrics(self) -> dict[str, float]:
        """The step, and the loss and the metrics of the last report."""
        progress = self.status.progress
        if progress is None:
            return {}
        return {"step": float(progress.step), **{one.name: float(one.value) for one in progress.metrics}}

    def fetch(self, *paths: str, directory: Path | str = ".", image: str | None = None) -> list[Path]:
        """Copy files of the job into a directory: its models, or these paths. Returns where they are."""
        return fetch(self._cluster, self.name, paths, Path(directory), image)

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
        steering.delete(self._cluster, self.name)

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
