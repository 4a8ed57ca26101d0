# SPDX-License-Identifier: Apache-2.0
"""The jobs of a cluster, with the rights of the user: one watch for all browsers, and one view for each open job."""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from dtjob.api.names import KIND
from dtjob.client.changes import batches, follow
from dtjob.client.cluster import Cluster
from dtjob.client.connection import Connection
from dtjob.client.errors import ClientError
from dtjob.client.patience import AGAIN
from dtjob.client.verbs.follow import Tails
from dtjob.client.verbs.logs import How, Line
from dtjob.client.verbs.pods import check_task, selector, task_of
from dtjob.client.verbs.reports import read_reports, shown_tasks
from dtjob.local.terminal_line import plain, seen
from dtjob.ui.hub import Hub, Key
from dtjob.ui.source import LONGEST_LINE, MOST_LINES, View
from dtjob.ui.views import RUNNING, report_values

Object = Mapping[str, Any]
ASK_SECONDS = 3.0
"""Between two questions to the supervisors of an open job."""
REFUSED_SECONDS = 60.0
"""Between two questions to the supervisors, if the last one had no answer."""


class ClusterSource:
    """The jobs of one namespace, or of all."""

    def __init__(self, cluster: Cluster, *, everywhere: bool = False) -> None:
        """Raises ClientError if the cluster does not answer, or the jobs may not be listed."""
        self.hub = Hub()
        self.title = "all namespaces" if everywhere else f"namespace {cluster.namespace}"
        self._cluster, self._began = cluster, time.strftime("%H:%M")
        self._lock = threading.Lock()
        self._open: dict[tuple[Key, str | None], OpenJob] = {}
        cluster.connection.outage.say = self._say
        cluster.connection.call("GET", cluster.path(KIND, everywhere=everywhere), query={"limit": 1})
        found = batches(cluster, KIND, everywhere=everywhere)  # which waits for a cluster that does not answer
        self.hub.take(next(found, []))
        threading.Thread(target=follow, args=(found, self.hub.take, self._lost), daemon=True, name="jobs").start()

    def _lost(self, error: ClientError) -> None:
        self.hub.trouble = f"the jobs are not watched any more: {error}"

    def _say(self, text: str) -> None:
        """Tell what the client says of an outage, until the cluster answers again."""
        self.hub.trouble = "" if text == AGAIN else text

    def view(self, key: Key, task: str | None) -> "OpenJob":
        """One view for all browsers that show the same. Raises ClientError, and BadInput on what is no task."""
        check_task(task)
        with self._lock:
            opened = self._open.get((key, task)) or OpenJob(self._cluster, self.hub, key, task, self._began)
            self._open[key, task] = opened
            opened.browsers += 1
            return opened

    def close(self, view: View) -> None:
        """End a view that no browser shows any more."""
        with self._lock:
            for at, opened in [*self._open.items()]:
                if opened is view:
                    opened.browsers -= 1
                    if not opened.browsers:
                        self._open.pop(at).end()


class OpenJob:
    """The pods, reports and log of one job, as long as a browser shows it."""

    def __init__(self, cluster: Cluster, hub: Hub, key: Key, task: str | None, began: str) -> None:
        """Raises ClientError if the pods may not be listed."""
        self.pods: Sequence[Object] = ()
        self.reports: Mapping[str, Object] = {}
        self.why = ""
        self.note = f"collected since {began}; dtjob tensorboard {key[1]} -n {key[0]} has all that was written"
        self.browsers = 0
        self._lines: deque[Line] = deque(maxlen=MOST_LINES)
        self._hub, self._key, self._stopping = hub, key, threading.Event()
        self._task = task or _chief(hub.job(key) or {})
        self._cluster = Cluster(Connection(cluster.connection.access), key[0])
        self._cluster.connection.outage.say = lambda text: None  # the watch of all jobs says so
        found = batches(self._cluster, "Pod", selector(key[1]), stopping=self._stopping)
        self._by_uid: dict[str, Object] = {}
        self._take(next(found, []))
        self._tails = Tails(self._cluster, key[1], self._lines.append, self._task, How(tail=MOST_LINES))
        self._tails.start()
        self.threads = [
            threading.Thread(target=target, args=arguments, daemon=True)
            for target, arguments in ((follow, (found, self._take, self._lost)), (self._ask, ()))
        ]
        for thread in self.threads:
            thread.start()

    def log(self) -> list[str]:
        """The last lines, in the order of time."""
        lines = [line.text for line in sorted([*self._lines], key=lambda line: line.time)]
        return [plain(seen(line[:LONGEST_LINE])) for line in lines or self._without_lines()]

    def _without_lines(self) -> list[str]:
        """What is shown of a task that has no lines: its last failure, and where its log is if its pod is gone."""
        job, (namespace, name) = self._hub.job(self._key) or {}, self._key
        failure = (job.get("status") or {}).get("lastFailure") or {}
        last = str(failure.get("logTail") or "").splitlines() if failure.get("task") == self._task else []
        if any(task_of(pod) == self._task for pod in self.pods):
            return last
        kept = (
            f"; dtjob logs {name} -n {namespace} --task {self._task} --attempt 0 prints what is kept of its first log"
        )
        with_checkpoints = "checkpoint" in (job.get("spec") or {})
        return [f"no pod of {self._task} is there{kept if with_checkpoints else ''}", *last]

    def curves(self) -> list[dict[str, Any]]:
        """The curves of metrics that the hub has collected."""
        return self._hub.curves(self._key)

    def _take(self, batch: Sequence[tuple[str, Object]]) -> None:
        for change, pod in batch:
            if change == "DELETED":
                self._by_uid.pop(pod["metadata"]["uid"], None)
            else:
                self._by_uid[pod["metadata"]["uid"]] = pod
        self.pods = [*self._by_uid.values()]

    def _lost(self, error: ClientError) -> None:
        self.why = f"the pods are not watched any more: {error}"

    def _ask(self) -> None:
        """Ask the supervisors again and again, which no watch shows."""
        while not self._stopping.is_set():
            job = self._hub.job(self._key) or {}
            if (job.get("status") or {}).get("phase") == RUNNING:
                self.reports, self.why = read_reports(self._cluster, job, shown_tasks(self.pods))
                chief = self.reports.get(_chief(job), {})
                self._hub.report(self._key, chief.get("step"), report_values(chief))
            self._stopping.wait(REFUSED_SECONDS if self.why and not self.reports else ASK_SECONDS)

    def end(self) -> None:
        """Watch and ask no more."""
        self._stopping.set()
        self._tails.stop()
        self._cluster.connection.end()


def _chief(job: Object) -> str:
    """The task that decides success, such as chief-0."""
    specs = (job.get("spec") or {}).get("replicaSpecs") or {}
    return "chief-0" if "chief" in specs or not specs.get("worker") else "worker-0"
