# SPDX-License-Identifier: Apache-2.0
"""Asks the supervisors of a run how their tasks are, over and over."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from dtjob.local.processes.addresses import HOST, Addresses
from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import Silence
from dtjob.plan.seen.progress import last_words
from dtjob.status_client import NoStatus, read_status

ANSWER_SECONDS = 1.0

Report = dict[str, Any]


class Poller:
    """The last report of every task of one job, those that have ended included."""

    def __init__(
        self,
        uid: str,
        addresses: Addresses,
        on_report: Callable[[str, Report], None],
        on_silence: Callable[[str, Silence], None] = lambda task, silence: None,
    ) -> None:
        """`on_report` is called with a task's id and each of its reports that comes from a supervisor, `on_silence`
        where one that had reported does not answer."""
        self._uid, self._addresses, self._on_report, self._on_silence = uid, addresses, on_report, on_silence
        self.reports: dict[str, Report] = {}
        """By task id."""

    async def poll(self, pods: Iterable[Manifest]) -> None:
        """Ask the supervisors of these pods, all at once."""
        await asyncio.gather(*(self._poll(pod) for pod in pods))

    def note_last_words(self, pod: Manifest) -> None:
        """Take what a supervisor left when it ended for its last report."""
        if left := last_words(pod):
            self.reports[labels.task_id(pod)] = left

    async def _poll(self, pod: Manifest) -> None:
        task, port = labels.task_id(pod), self._addresses.status_port(pod["spec"]["hostname"])
        try:
            report = await read_status(HOST, port, answer_seconds=ANSWER_SECONDS)
        except NoStatus as error:
            if self.reports.get(task, {}).get("attempt") == topology.attempt_of(pod):
                uid = pod["metadata"].get("uid", "")
                silence = Silence(uid, f"{HOST}:{port}", datetime.now(UTC), error.reason, str(error))
                self._on_silence(task, silence)
            return
        if is_of(report, self._uid, task):
            self.reports[task] = report
            self._on_report(task, report)


def is_of(report: Report, uid: str, task: str) -> bool:
    """Whether a report is of this task of this job, and not of a stranger that has its port."""
    return report.get("jobUid") == uid and report.get("task") == task
