# SPDX-License-Identifier: Apache-2.0
"""What a job in a cluster and a job on this machine have in common."""

import html
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtjob.api.job import Job
from dtjob.api.status.status import Status
from dtjob.client.errors import ClientError
from dtjob.client.verbs.helper_pod import typed
from dtjob.client.verbs.wait import END
from dtjob.client.verbs.words import status_lines


class StartedJob(ABC):
    """One job that was started. `RemoteJob` and `LocalJob` are used alike.

    Every method may raise `dtjob.ClientError`, such as NotFound if the job is deleted.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def manifest(self) -> Job:
        """The manifest of the job as it is now."""
        return typed(self._stored())

    @property
    def status(self) -> Status:
        """The status of the job as it is now, an empty one before the first."""
        return Status.read(self._stored().get("status") or {})

    def metrics(self) -> dict[str, float]:
        """The step, and the loss and the metrics of the last report. Empty before the first."""
        progress = self.status.progress
        if progress is None:
            return {}
        return {"step": float(progress.step), **{one.name: float(one.value) for one in progress.metrics}}

    @abstractmethod
    def wait(self, wanted: str = END, timeout: float | None = None) -> Status:
        """Wait until the job is so: End (a good one), Running, Suspended, Complete, Failed, FirstStep, Checkpoint or
        Deleted. Returns its status, an empty one if it is deleted.

        Raises JobFailed if it ended otherwise or waits for its user, and TimeoutError after so many seconds.
        """

    @abstractmethod
    def logs(self, task: str | None = None, *, follow: bool = False) -> Iterator[str]:
        """The lines of all tasks, of one, or of a role, each with its task before it. `follow`: until the job ends.

        Whoever leaves the loop ends the reading too.
        """

    @abstractmethod
    def fetch(self, *paths: str, directory: Path | str = ".") -> list[Path]:
        """Copy files of the job into a directory: its models, or these paths. Returns where they are.

        A path is relative to the directory of the checkpoints, or is checkpoints, events, logs or all.
        """

    @abstractmethod
    def suspend(self) -> None:
        """Save a checkpoint and end the tasks of the job."""

    @abstractmethod
    def resume(self) -> None:
        """Continue it at its last checkpoint."""

    @abstractmethod
    def scale(self, workers: int) -> None:
        """Change the number of workers of an elastic job."""

    @abstractmethod
    def delete(self) -> None:
        """End the job without saving, and delete it. Checkpoints stay."""

    @abstractmethod
    def _stored(self) -> dict[str, Any]:
        """The job as an API server has it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def _repr_html_(self) -> str:
        """The status, in a notebook."""
        try:
            text = "\n".join(status_lines(self._stored()))
        except ClientError as error:
            text = f"{self.name}: {error}"
        return f"<pre>{html.escape(text)}</pre>"
