# SPDX-License-Identifier: Apache-2.0
"""All jobs as they are now, for all browsers. Any thread may change and read them."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from dtjob.ui.event_files import EVALUATOR
from dtjob.ui.series import Series
from dtjob.ui.views import evaluation_values, progress_values, row

Object = Mapping[str, Any]
Key = tuple[str, str]
"""Namespace and name."""


class Hub:
    """The jobs, and the curves of what their statuses have said."""

    def __init__(self) -> None:
        self.trouble = ""
        """Why nothing new comes, empty if all is well."""
        self._lock = threading.Lock()
        self._jobs: dict[Key, Object] = {}
        self._versions: dict[Key, int] = {}
        self._series: dict[Key, Series] = {}
        self._version = 0

    def take(self, changes: Iterable[tuple[str, Object]]) -> None:
        """Take in what has happened to jobs: ADDED, MODIFIED or DELETED, and the job."""
        with self._lock:
            for change, job in changes:
                key = key_of(job)
                self._version += 1
                if change == "DELETED":
                    for known in (self._jobs, self._versions, self._series):
                        known.pop(key, None)
                    continue
                self._jobs[key], self._versions[key] = job, self._version
                self._collect(self._series.setdefault(key, Series()), job.get("status") or {})

    def report(self, key: Key, step: Any, values: Object) -> None:
        """Take what a chief has reported to the curves of a job."""
        with self._lock:
            if key in self._jobs:
                self._series[key].add(step, values)

    def job(self, key: Key) -> Object | None:
        """The job, None if there is none."""
        with self._lock:
            return self._jobs.get(key)

    def curves(self, key: Key) -> list[dict[str, Any]]:
        """The curves of a job."""
        with self._lock:
            return [*self._series[key].curves()] if key in self._series else []

    def since(self, version: int, known: set[tuple[str, str]]) -> tuple[int, dict[str, Any]]:
        """The version now, and the rows that are newer than this one. `known`: jobs that the browser has; those that
        are gone are named, and the set is brought up to date."""
        with self._lock:
            rows = [row(self._jobs[key]) for key, at in self._versions.items() if at > version]
            gone = [*(known - self._jobs.keys())]
            known.clear()
            known.update(self._jobs)
            return self._version, {"rows": rows, "gone": gone}

    @staticmethod
    def _collect(series: Series, status: Object) -> None:
        progress, evaluation = status.get("progress") or {}, status.get("evaluation") or {}
        series.add(progress.get("step"), progress_values(progress))
        series.add(evaluation.get("step"), dict(evaluation_values(evaluation, EVALUATOR)))


def key_of(job: Object) -> Key:
    """The namespace and the name of a job."""
    return str(job["metadata"].get("namespace") or ""), str(job["metadata"]["name"])
