# SPDX-License-Identifier: Apache-2.0
"""How long recoveries take: from when a failure or a crash was observed to the first training step after it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dtjob.api.spec.replica_specs import Role
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen import children
from dtjob.plan.seen.children import PodState

Reports = Mapping[str, Mapping[str, Any]]

AT_WORK = ("training", "serving", "saving", "finished")


def counts(pod: Manifest, now: datetime) -> bool:
    """Whether training has to recover from what this pod's process came to: nobody asked it to end."""
    failed = children.state_of(pod, now, supervised=True) is PodState.FAILED and not children.deleting(pod)
    return failed and Role(labels.of(pod)[labels.ROLE]).trains


@dataclass
class Recovery:
    """One that is under way."""

    began: float
    victims: dict[str, int | None] = field(default_factory=dict)
    """Failed tasks, each with the pid of the supervisor that it had."""
    chief_training_pid: int | None = None
    """The chief task's training process when the failure was observed; None if it had ended by then."""
    chief_step: int | None = None
    """The chief's step when all victims were back, for chiefs that did not have to start again (ParameterServer)."""


class Recoveries:
    """Measures every recovery of one run. Times are of any monotonic clock, in seconds."""

    def __init__(self, chief: str) -> None:
        """`chief` is the id of the chief task, whose steps are the training's."""
        self._chief = chief
        self.current: Recovery | None = None
        self.seconds: list[float] = []
        """Of every recovery that ended in a training step, in order."""
        self._crashes = (0, 0)
        """The chief's attempt, and of how many crashes its supervisor has told."""

    def failed(self, task: str, reports: Reports, now: float) -> None:
        """A training task's pod has ended with a failure. During a recovery this prolongs it."""
        if self.current is None:
            self.current = Recovery(now, chief_training_pid=reports.get(self._chief, {}).get("trainingPid"))
        self.current.victims[task] = reports.get(task, {}).get("pid")
        self.current.chief_step = None

    def observe(self, reports: Reports, now: float) -> float | None:
        """Take in new reports. Returns the seconds of a recovery that they end."""
        self._note_crash(reports.get(self._chief, {}), now)
        current = self.current
        if current is None or not all(self._is_back(task, pid, reports) for task, pid in current.victims.items()):
            return None
        chief = reports.get(self._chief, {})
        step = chief.get("step")
        if chief.get("state") not in AT_WORK or step is None:
            return None
        if chief.get("trainingPid") == current.chief_training_pid and self._chief not in current.victims:
            if not current.victims:
                return None  # over a crash all of the group start again, and this process has yet to notice
            if current.chief_step is None:
                current.chief_step = step
            reached = step > current.chief_step
        else:
            reached = step > chief.get("restoredStep", 0)
        if not reached and chief["state"] != "finished":
            return None
        self.current = None
        self.seconds.append(round(now - current.began, 2))
        return self.seconds[-1]

    def _note_crash(self, chief: Mapping[str, Any], now: float) -> None:
        """A training process that a signal ended is started again in its supervisor, and its group with it."""
        reported = (chief.get("attempt", 0), (chief.get("crashes") or {}).get("count", 0))
        if reported[1] > (self._crashes[1] if reported[0] == self._crashes[0] else 0) and self.current is None:
            still_at_work = chief.get("state") in AT_WORK  # it has not noticed yet
            self.current = Recovery(now, chief_training_pid=chief.get("trainingPid") if still_at_work else None)
        self._crashes = reported

    @staticmethod
    def _is_back(task: str, old_pid: int | None, reports: Reports) -> bool:
        report = reports.get(task, {})
        return report.get("pid") not in (None, old_pid) and report.get("state") in AT_WORK
