# SPDX-License-Identifier: Apache-2.0
"""A job in a cluster, as an object."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtjob.api.job import KIND
from dtjob.api.status.status import Status
from dtjob.client.cluster import Cluster
from dtjob.client.verbs import steering
from dtjob.client.verbs.fetch import fetch
from dtjob.client.verbs.follow import follow as follow_job
from dtjob.client.verbs.logs import Line
from dtjob.client.verbs.logs import logs as lines_of
from dtjob.client.verbs.wait import END, check_wanted, wait
from dtjob.sdk.started_job import StartedJob


class RemoteJob(StartedJob):
    """One job of a cluster."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(name)
        self._cluster = cluster

    @property
    def namespace(self) -> str:
        """The namespace of the job."""
        return self._cluster.namespace

    def wait(self, wanted: str = END, timeout: float | None = None) -> Status:  # noqa: D102 (of StartedJob)
        found = wait(self._cluster, self.name, check_wanted(wanted), timeout)
        return Status.read((found or {}).get("status") or {})

    def logs(self, task: str | None = None, *, follow: bool = False) -> Iterator[str]:  # noqa: D102
        read = follow_job if follow else lines_of
        with contextlib.closing(read(self._cluster, self.name, task)) as found:
            for one in found:
                if isinstance(one, Line):
                    yield f"{one.task} | {one.text}"

    def fetch(self, *paths: str, directory: Path | str = ".", image: str | None = None) -> list[Path]:
        """Copy files as StartedJob does, with a pod that reads them. `image`: of that pod. Default: the job's."""
        return fetch(self._cluster, self.name, paths, Path(directory), image)

    def suspend(self) -> None:  # noqa: D102
        steering.suspend(self._cluster, self.name)

    def resume(self) -> None:  # noqa: D102
        steering.resume(self._cluster, self.name)

    def scale(self, workers: int) -> None:  # noqa: D102
        steering.scale(self._cluster, self.name, workers)

    def delete(self) -> None:  # noqa: D102
        steering.delete(self._cluster, self.name)

    def _stored(self) -> dict[str, Any]:
        return self._cluster.get(KIND, self.name)
