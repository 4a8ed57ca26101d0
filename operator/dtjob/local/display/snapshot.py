# SPDX-License-Identifier: Apache-2.0
"""What is known of a local run at one moment, and each task's line of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dtjob.api.job import Job
from dtjob.api.phase import ENDED, Phase
from dtjob.api.status.status import Status
from dtjob.objects import labels, topology
from dtjob.objects.exit_codes import TOLD_TO_END
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.pod_facts import facts_of


@dataclass(frozen=True)
class Snapshot:
    """One look at a run."""

    job: Job
    status: Mapping[str, Any] = field(default_factory=dict)
    """The job's status, as the plan last wrote it."""
    pods: tuple[Manifest, ...] = ()
    pids: Mapping[str, int] = field(default_factory=dict)
    """Pod name to pid of its supervisor, for those that run."""
    reports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Task id to what its supervisor said last (contract.md); it may have ended since."""
    recovering: bool = False
    recovery_seconds: tuple[float, ...] = ()
    elapsed: float = 0.0
    """Seconds since the run began."""

    @property
    def chief(self) -> Mapping[str, Any]:
        """The chief task's report, empty before its first."""
        return self.reports.get(topology.chief_task(self.job).id, {})

    @property
    def evaluation(self) -> Mapping[str, Any]:
        """The evaluator's latest evaluation, empty if there is none."""
        found: Mapping[str, Any] = self.reports.get("evaluator-0", {}).get("evaluation") or {}
        return found

    @property
    def phase(self) -> str:
        """The job's phase."""
        return str(self.status.get("phase", Phase.PENDING))


@dataclass(frozen=True)
class TaskLine:
    """One task, as the view shows it. Numbers are None if they are not known."""

    task: str
    state: str
    supervisor_pid: int | None
    training_pid: int | None
    step: int | None
    loss: float | None
    steps_per_second: float | None
    restarts: int
    """New attempts at the task and restarts in place inside the current one."""
    message: str


def task_lines(snapshot: Snapshot) -> list[TaskLine]:
    """Every task of the job, in the order of the manifest's roles."""
    attempts = Status.read({"internal": snapshot.status.get("internal")}).internal.attempts
    pods = {pod["metadata"]["name"]: pod for pod in snapshot.pods}
    lines = []
    for task in topology.tasks(snapshot.job):
        attempt = attempts.of(task.id)
        pod = pods.get(topology.pod_name(snapshot.job, task, attempt))
        report = snapshot.reports.get(task.id, {})
        lines.append(_line(task.id, attempt, pod, report, snapshot.pids))
    if snapshot.phase in ENDED:  # a pod that only serves is deleted then
        return [replace(line, state="ended") if line.state == "pending" else line for line in lines]
    if not snapshot.reports:  # they wait for the process from which all are forked
        lines = [replace(line, state="importing") if line.state == "pending" else line for line in lines]
    return lines


def _line(
    task: str, attempt: int, pod: Manifest | None, report: Mapping[str, Any], pids: Mapping[str, int]
) -> TaskLine:
    pid = pids.get(pod["metadata"]["name"]) if pod else None
    alive = pid is not None
    current = report if report.get("attempt") == attempt else {}
    end = facts_of(pod).end if pod else None
    if pod is None:
        state = "pending"
    elif end is not None:
        state = {0: "finished", TOLD_TO_END: "stopped"}.get(end["exitCode"], "failed")
    else:
        state = str(current.get("state", "starting" if alive else "importing"))
    if state == "starting" and current.get("trainsItself"):
        state = "training"  # the program's own loop, of which no report comes
    if pod is not None and end is None and labels.SERVING not in labels.of(pod):
        state = "ending"
    return TaskLine(
        task=task,
        state=state,
        supervisor_pid=pid,
        training_pid=current.get("trainingPid") if alive else None,
        step=current.get("step"),
        loss=current.get("loss"),
        steps_per_second=current.get("stepsPerSecond") if alive else None,
        restarts=attempt + int(current.get("restartsInPlace", 0)),
        message=str(current.get("message", "")) if alive else "",
    )


def restarts_by_cause(status: Mapping[str, Any]) -> dict[str, int]:
    """How often training was restarted, by cause; the evaluator's restarts, which training does not feel, apart."""
    restarts = status.get("restarts") or {}
    counts = {cause: int(count) for cause, count in (restarts.get("causes") or {}).items()}
    if restarts.get("evaluator"):
        counts["Evaluator"] = int(restarts["evaluator"])
    return counts
