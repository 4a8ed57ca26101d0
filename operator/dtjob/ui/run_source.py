# SPDX-License-Identifier: Apache-2.0
"""A run on this machine: what `dtjob run` sees of it, its logs and its event files."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dtjob.client.verbs.pods import check_task
from dtjob.local.display.snapshot import Snapshot
from dtjob.local.here import manifest_of
from dtjob.local.logs import log_files
from dtjob.local.runs import Run
from dtjob.local.terminal_line import TerminalLine, plain
from dtjob.objects import topology
from dtjob.times import rfc3339
from dtjob.ui.event_files import EventFiles
from dtjob.ui.hub import Hub, Key
from dtjob.ui.source import LONGEST_LINE, MOST_LINES, View
from dtjob.ui.views import report_values

Object = Mapping[str, Any]
_TAIL_BYTES = 64 * 1024
"""Read at the end of a log, again and again."""


class RunSource:
    """The one job of a run."""

    def __init__(self, run: Run) -> None:
        self.hub, self.run = Hub(), run
        self.title = "a run on this machine"
        self.events = EventFiles(run.events)
        self.snapshot: Snapshot | None = None
        self._began = rfc3339(datetime.now(UTC))

    def observe(self, snapshot: Snapshot) -> None:
        """Take in a look at the run."""
        self.snapshot = snapshot
        job = manifest_of(snapshot.job)
        job["metadata"].setdefault("creationTimestamp", self._began)
        self.hub.take([("MODIFIED", {**job, "status": snapshot.status})])
        chief = snapshot.chief
        self.hub.report(_key(snapshot), chief.get("step"), report_values(chief))

    def view(self, key: Key, task: str | None) -> "OpenRun":
        """The run with the log of this task. Raises BadInput on what is no task."""
        check_task(task)
        return OpenRun(self, key, task)

    def close(self, view: View) -> None:
        """Do nothing: a view of a run holds nothing."""


class OpenRun:
    """The run as a browser shows it. It is read when it is asked for."""

    def __init__(self, source: RunSource, key: Key, task: str | None) -> None:
        self._source, self._key, self._task = source, key, task
        self.why = ""

    @property
    def pods(self) -> Sequence[Object]:
        """The job's pods, as `dtjob run` keeps them."""
        return self._source.snapshot.pods if self._source.snapshot else ()

    @property
    def reports(self) -> Mapping[str, Object]:
        """The last reports."""
        return self._source.snapshot.reports if self._source.snapshot else {}

    @property
    def note(self) -> str:
        """Whether there are event files."""
        directory = self._source.events.directory
        return f"from {directory}" if directory.is_dir() else "collected since this start of dtjob run"

    def log(self) -> list[str]:
        """The end of the log of the newest attempt."""
        snapshot = self._source.snapshot
        if snapshot is None:
            return []
        wanted = self._task or topology.chief_task(snapshot.job).id
        files = log_files(self._source.run.logs, snapshot.job.metadata.name, lambda task: task == wanted)
        if not files:
            return []
        with files[-1].path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            terminal = TerminalLine()
            lines = [*terminal.write_bytes(file.read()), terminal.end()]
        return [plain(line)[:LONGEST_LINE] for line in lines if line][-MOST_LINES:]

    def curves(self) -> list[dict[str, Any]]:
        """The curves of the event files. If the job writes none: the curves that the hub has collected."""
        return self._source.events.curves() or self._source.hub.curves(self._key)


def _key(snapshot: Snapshot) -> Key:
    return snapshot.job.metadata.namespace, snapshot.job.metadata.name
