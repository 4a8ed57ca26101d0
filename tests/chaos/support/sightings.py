# SPDX-License-Identifier: Apache-2.0
"""Looks at jobs and pods twice a second, and notes what must never happen."""

import threading
from collections import Counter, defaultdict

from dtjob.objects import labels
from dtjob.plan.seen.children import ended
from tests.chaos.support.bed import JOBS, Bed
from tests.chaos.support.patience import is_outage
from tests.e2e.jobs.support.training_job import running
from tools.cluster.rest import Object

LOOK_SECONDS = 0.5


def writes(pod: Object) -> bool:
    """Whether the pod is a chief that may write checkpoints. A chief that is being deleted may, until it has ended."""
    return labels.task_id(pod) == "chief-0" and running(pod) and not ended(pod)


class Sightings:
    """Looks during its `with` block. `pods`, `operators` and `jobs` are those of the last look, by name. `broken` lists
    what must not have happened."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self.pods: dict[str, Object] = {}
        self.operators: dict[str, Object] = {}
        self.jobs: dict[str, Object] = {}
        self.broken: list[str] = []
        self.looks = self.blind = 0
        self.pods_seen: dict[str, set[str]] = defaultdict(set)
        """The uids seen under each name of a pod. The name contains the attempt, so there is one uid at most."""
        self._last: dict[str, Object] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sightings", daemon=True)

    def __enter__(self) -> "Sightings":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                jobs, pods = self._bed.api.list("dtjobs", JOBS), self._bed.api.list("pods", JOBS)
                operators = self._bed.operators()
            except Exception as error:
                if not is_outage(error):
                    self.broken.append(f"the test itself: {error!r}")
                self.blind += 1
                continue
            self.looks += 1
            self.jobs = {job["metadata"]["name"]: job for job in jobs}
            self.pods = {pod["metadata"]["name"]: pod for pod in pods if labels.JOB_NAME in labels.of(pod)}
            self.operators = {pod["metadata"]["name"]: pod for pod in operators}
            self._check()

    def _check(self) -> None:
        for name, pod in self.pods.items():
            seen = self.pods_seen[name]
            seen.add(pod["metadata"]["uid"])
            if len(seen) > 1:
                self._note(f"pod {name} was created twice: {sorted(seen)}")
        tasks = Counter((labels.of(pod)[labels.JOB_NAME], labels.task_id(pod)) for pod in self.alive())
        for (job, task), count in tasks.items():
            if count > 1:
                self._note(f"{count} pods of {job}'s {task} run at once")
        writers = Counter(labels.of(pod)[labels.JOB_NAME] for pod in self.pods.values() if writes(pod))
        for owner, count in writers.items():
            if count > 1:
                self._note(f"{count} chiefs of {owner} may write at once")
        for name, job in self.jobs.items():
            before, self._last[name] = self._last.get(name), job
            self._check_job(name, job.get("status", {}), (before or {}).get("status", {}))

    def _check_job(self, name: str, status: Object, before: Object) -> None:
        restarts, earlier = status.get("restarts", {}), before.get("restarts", {})
        if sum(restarts.get("causes", {}).values()) != restarts.get("total", 0):
            self._note(f"{name}: the causes of restarts do not add up: {restarts}")
        if restarts.get("total", 0) < earlier.get("total", 0):  # the cause of a restart may be corrected
            self._note(f"{name}: restarts were counted back: {earlier} and then {restarts}")
        saved, earlier_saved = (one.get("checkpoint", {}).get("step", 0) for one in (status, before))
        if saved < earlier_saved:
            self._note(f"{name}: a checkpoint was lost: step {earlier_saved} and then {saved}")
        if before.get("phase") in ("Succeeded", "Failed") and status.get("phase") != before["phase"]:
            self._note(f"{name}: was {before['phase']} and is {status.get('phase')}")

    def _note(self, what: str) -> None:
        if what not in self.broken:
            self.broken.append(what)

    def alive(self) -> list[Object]:
        """The pods of the last look that run and are not being deleted."""
        return [pod for pod in self.pods.values() if running(pod) and "deletionTimestamp" not in pod["metadata"]]
