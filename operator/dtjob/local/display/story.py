# SPDX-License-Identifier: Apache-2.0
"""The run in sentences: what is worth a line, from one look at the run to the next."""

from dtjob.api.phase import Phase
from dtjob.controller.call_summary import CREATED, DELETED, REFUSED
from dtjob.local.display.snapshot import Snapshot, metrics_text
from dtjob.plan.actions import Event
from dtjob.plan.diagnosis.checkpoints import RESUMED, STARTED_OVER
from dtjob.times import duration

BY_PLAN_ONLY = (Phase.SUCCEEDED.value, Phase.FAILED.value, CREATED, DELETED, REFUSED, RESUMED, STARTED_OVER)
"""Events that say no more than the summary does, the lines about processes, those made from the chief's report, or the
event that the job is blocked."""

EVALUATOR = "evaluator:"
"""Begins the lines with the evaluator's word."""


IMPORTING = "importing TensorFlow"
"""What a run does at first."""

OWN_LOOP = "the program trains in a loop of its own; dtjob does not count its steps"


class Story:
    """Remembers what it has told. One for each run."""

    def __init__(self) -> None:
        self._restarts: dict[str, tuple[int, int]] = {}
        """Of each task its attempt, and how often its training process was started again in that attempt."""
        self._looked, self._began = False, False
        self._recoveries = 0
        self._evaluated: int | None = None

    def event(self, event: Event) -> list[str]:
        """What to say of an event of the plan."""
        return [] if event.reason in BY_PLAN_ONLY else [event.message]

    def observe(self, snapshot: Snapshot) -> list[str]:
        """What to say of the new look, in order."""
        lines = [] if self._looked or snapshot.reports else [IMPORTING]
        self._looked = True
        lines += [*self._restarts_in_place(snapshot), *self._start(snapshot), *self._recovery(snapshot)]
        evaluation = snapshot.evaluation
        if evaluation and evaluation.get("step") != self._evaluated:
            self._evaluated = evaluation["step"]
            lines.append(f"{EVALUATOR} {metrics_text(evaluation.get('metrics') or {})} at step {self._evaluated}")
        return lines

    def _restarts_in_place(self, snapshot: Snapshot) -> list[str]:
        """One line for all tasks that a lost peer made start again; each names the peer when it knows it."""
        again: dict[str, list[str]] = {}
        for task, report in snapshot.reports.items():
            seen = int(report.get("attempt", 0)), int(report.get("restartsInPlace", 0))
            if seen[1] > 0 and seen != self._restarts.get(task):
                if report.get("state") not in ("training", "serving", "starting"):
                    continue  # its cause is known at the next go only
                cause = (report.get("lastRestart") or {}).get("cause", "a peer was lost")
                again.setdefault(cause, []).append(task)
            self._restarts[task] = seen
        return [f"{', '.join(sorted(tasks))}: started again in place ({cause})" for cause, tasks in again.items()]

    def _start(self, snapshot: Snapshot) -> list[str]:
        chief = snapshot.chief
        if self._began or not (chief.get("state") == "training" or chief.get("trainsItself")):
            return []
        self._began = True
        if chief["state"] != "training":
            return [OWN_LOOP]
        total = chief.get("totalSteps")
        if chief.get("restoredStep"):
            return [f"training goes on from the checkpoint at step {chief['restoredStep']}"]
        return [f"training begins: {total} steps" if total else "training begins"]

    def _recovery(self, snapshot: Snapshot) -> list[str]:
        lines = []
        for seconds in snapshot.recovery_seconds[self._recoveries :]:
            restored = snapshot.chief.get("restoredStep")
            source = f"from the checkpoint at step {restored}" if restored else "from step 0"
            lines.append(f"training goes on {source}; the first new step came {seconds:.1f} s after the failure")
        self._recoveries = len(snapshot.recovery_seconds)
        return lines


def progress_text(snapshot: Snapshot, columns: int | None = None) -> str:
    """Where training is, in one line; empty before the first step. `columns`: leave out what they have no room for."""
    parts = _progress(snapshot)
    for less in ("speed", "loss"):
        if columns is not None and len(", ".join(parts.values())) > columns:
            parts.pop(less, None)
    return ", ".join(parts.values())


def _progress(snapshot: Snapshot) -> dict[str, str]:
    chief = snapshot.chief
    if not chief.get("step"):
        return {}
    total, epochs = chief.get("totalSteps"), chief.get("totalEpochs")
    parts = {}
    if epochs:
        parts["epoch"] = f"epoch {min(chief.get('epoch', 0) + 1, epochs)}/{epochs}"
    parts["step"] = f"step {chief['step']}" + (
        f" of {total} ({min(100, 100 * chief['step'] // total)}%)" if total else " of ?"
    )
    if chief.get("loss") is not None:
        parts["loss"] = f"loss {chief['loss']:.4g}"
    if chief.get("stepsPerSecond"):
        parts["speed"] = f"{chief['stepsPerSecond']:.3g} steps/s"
    if chief.get("etaSeconds") is not None and chief.get("state") == "training":
        parts["left"] = f"{duration(chief['etaSeconds'])} left"
    return parts
