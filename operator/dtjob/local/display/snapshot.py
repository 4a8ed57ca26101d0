# SPDX-License-Identifier: Apache-2.0
"""What is known of a local run at one moment, and each task's line of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dtjob.api.job import Job
from dtjob.api.phase import ENDED, Phase
from dtjob.api.status.status import Status
from dtjob.objects import labels, topology
from dtjob.objects.exit_codes import TOLD_TO_END
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import facts_of

ACCURACIES = ("val_accuracy", "accuracy", "val_acc", "acc")


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
    waiting = "importing"  # for the process from which all are forked
    if snapshot.phase in ENDED:
        waiting = "ended"  # a pod that only serves is deleted then
    elif snapshot.reports:
        waiting = "pending"
    lines = []
    for task in topology.tasks(snapshot.job):
        attempt = attempts.of(task.id)
        name = topology.pod_name(snapshot.job, task, attempt)
        pid, report = snapshot.pids.get(name), snapshot.reports.get(task.id, {})
        current = report if report.get("attempt") == attempt else {}
        lines.append(
            TaskLine(
                task=task.id,
                state=_state(pods[name], current, pid) if name in pods else waiting,
                supervisor_pid=pid,
                training_pid=current.get("trainingPid") if pid else None,
                step=current.get("step"),
                loss=current.get("loss"),
                steps_per_second=current.get("stepsPerSecond") if pid else None,
                restarts=attempt + int(current.get("restartsInPlace", 0)),
                message=str(current.get("message", "")) if pid else "",
            )
        )
    return lines


def _state(pod: Manifest, report: Mapping[str, Any], pid: int | None) -> str:
    """What a task is at, in one word. `report`: what its attempt has said; `pid`: None if no supervisor runs."""
    if (end := facts_of(pod).end) is not None:
        return {0: "finished", TOLD_TO_END: "stopped"}.get(end["exitCode"], "failed")
    if labels.SERVING not in labels.of(pod):
        return "ending"
    state = str(report.get("state", "starting" if pid else "importing"))
    # In the program's own loop, of which no report comes.
    return "training" if state == "starting" and report.get("trainsItself") else state


def metrics_text(metrics: Mapping[str, Any]) -> str:
    """Metrics in words, accuracy first: `accuracy 0.953, loss 0.21`."""
    names = sorted(metrics, key=lambda name: (name not in ACCURACIES, name))
    return ", ".join(f"{name} {metrics[name]:.4g}" for name in names if isinstance(metrics[name], (int, float)))
