"""A job's status: what `plan` knows of a job beside what it observes. JSON at the edges, a value in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dtjob import times
from dtjob.api.phase import ENDED, Phase
from dtjob.objects import gangs
from dtjob.objects.topology import Task
from dtjob.plan import finished
from dtjob.plan.activity import Activity
from dtjob.plan.attempts import Attempts
from dtjob.plan.children import PodState, TaskView
from dtjob.plan.conditions import CHECKPOINTS_KEPT, COMPLETE, Conditions, with_condition
from dtjob.plan.goodput import Goodput
from dtjob.plan.incident import Incident
from dtjob.plan.progress import Progress
from dtjob.plan.queue_entry import QueueEntry
from dtjob.plan.workers import Workers

PHASE_CONDITIONS = (Phase.RUNNING, Phase.RESTARTING, Phase.SUCCEEDED, Phase.FAILED)
"""The phases that have a condition of their name; a job is Pending while none of them holds."""

COUNTED_AS = {
    PodState.RUNNING: "active",
    PodState.PENDING: "pending",
    PodState.SUCCEEDED: "succeeded",
    PodState.FAILED: "failed",
    PodState.LOST: "failed",
    PodState.IGNORED: "failed",
}
"""Names of the counts in `replicaStatuses`."""


@dataclass(frozen=True)
class InPlace:
    """How many crashes were counted of those that the chief's supervisor tells of."""

    attempt: int
    """The attempt at the chief."""
    count: int


@dataclass(frozen=True)
class Restarts:
    """How often tasks were started anew: `total` restarts of training by cause, and the evaluator's own apart."""

    total: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)
    evaluator: int = 0
    in_place: InPlace | None = None
    """Those of `total` over crashes in containers that go on, as far as they were counted (`policies/crashes.py`)."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Fields that a newer operator wrote; kept."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Restarts:
        """The counts that `status.restarts` holds."""
        known, there = ("total", "causes", "evaluator", "inPlace"), fields.get("inPlace")
        others = {name: value for name, value in fields.items() if name not in known}
        in_place = InPlace(there.get("attempt", 0), there.get("count", 0)) if there else None
        return cls(fields.get("total", 0), fields.get("causes", {}), fields.get("evaluator", 0), in_place, others)

    def to_json(self) -> dict[str, Any]:
        """The counts in the status' form."""
        counts = {**self.others, "total": self.total, "causes": dict(self.causes), "evaluator": self.evaluator}
        if self.in_place is not None:
            counts["inPlace"] = {"attempt": self.in_place.attempt, "count": self.in_place.count}
        return {name: count for name, count in counts.items() if count or name not in ("causes", "evaluator")}


@dataclass(frozen=True)
class Status:
    """The status, as `plan` reads and writes it. A field is None where nobody has written it yet.

    Blocks that are only carried to the user stay JSON. `from_json` and `to_json` lose nothing that an operator wrote,
    be it a newer one: what this version does not know is in `others`.
    """

    observed_generation: int | None = None
    phase: Phase | None = None
    reason: str | None = None
    message: str | None = None
    conditions: Conditions = ()
    image: str | None = None
    ready: str | None = None
    start_time: str | None = None
    first_step_time: str | None = None
    """When it first showed that a step was done; None: none was, as far as is known."""
    completion_time: datetime | None = None
    active: Activity | None = None
    """How long it has been active; None before it first was, and in jobs that an earlier operator began."""
    replica_statuses: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    goodput: Goodput | None = None
    """What its time went into; None before all tasks ran, and of jobs without our trainer."""
    restarts: Restarts = field(default_factory=Restarts)
    restored: Mapping[str, Any] = field(default_factory=dict)
    """What the chief's training process went on from, when it was last seen to start (`policies/restored.py`)."""
    gang: Mapping[str, Any] = field(default_factory=dict)
    """Whose gang it is, and how many of its pods are bound at once."""
    first_failure: Mapping[str, Any] = field(default_factory=dict)
    incident: Incident | None = None
    attempts: Attempts = field(default_factory=Attempts)
    """The attempt of each task by its id."""
    finished: finished.Finished = field(default_factory=dict)
    """The attempt of each task that has ended well, by its id: its pod may go, and is not made again."""
    workers: Workers | None = None
    """How many workers there are and are to be, of a job whose number of them changes."""
    all_created: bool | None = None
    """Whether every current attempt has had its pod, so that one that is missing was deleted."""
    queue: QueueEntry | None = None
    """Its place in a queue of Kueue; None where it is in none."""
    others: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Status:
        """The status that a job has."""
        return cls(
            observed_generation=fields.get("observedGeneration"),
            phase=Phase.known(fields.get("phase")),
            reason=fields.get("reason"),
            message=fields.get("message"),
            conditions=tuple(fields.get("conditions", ())),
            image=fields.get("image"),
            ready=fields.get("ready"),
            start_time=fields.get("startTime"),
            first_step_time=fields.get("firstStepTime"),
            completion_time=times.parse(fields["completionTime"]) if fields.get("completionTime") else None,
            active=Activity.from_json(fields["active"]) if "active" in fields else None,
            replica_statuses=fields.get("replicaStatuses", {}),
            progress=Progress(fields.get("progress", {}), fields.get("checkpoint", {}), fields.get("evaluation", {})),
            goodput=Goodput.from_json(fields.get("goodput")),
            restarts=Restarts.from_json(fields.get("restarts", {})),
            restored=fields.get("restored", {}),
            gang=fields.get(gangs.STATUS_FIELD, {}),
            first_failure=fields.get("firstFailure", {}),
            incident=Incident.from_json(fields["incident"]) if fields.get("incident") else None,
            attempts=Attempts.from_json(fields.get("attempts", {})),
            finished=finished.from_json(fields.get("finished", ())),
            workers=Workers.from_json(fields["workers"]) if fields.get("workers") else None,
            all_created=fields.get("allCreated"),
            queue=QueueEntry.from_json(fields["queue"]) if fields.get("queue") else None,
            others={name: value for name, value in fields.items() if name not in WRITTEN},
        )

    def to_json(self) -> dict[str, Any]:
        """The status as it is written; what is None or empty is left out."""
        return {**self.others, **{name: value for name, value in self._fields().items() if value is not None}}

    def _fields(self) -> dict[str, Any]:
        """All that this version writes, None where it is left out."""
        return {
            "observedGeneration": self.observed_generation,
            "phase": self.phase.value if self.phase else None,
            "reason": self.reason,
            "message": self.message,
            "conditions": list(self.conditions),
            "image": self.image,
            "ready": self.ready,
            "startTime": self.start_time,
            "firstStepTime": self.first_step_time,
            "completionTime": times.rfc3339(self.completion_time) if self.completion_time else None,
            "active": self.active.to_json() if self.active else None,
            "replicaStatuses": dict(self.replica_statuses) or None,
            "progress": dict(self.progress.training) or None,
            "checkpoint": dict(self.progress.checkpoint) or None,
            "evaluation": dict(self.progress.evaluation) or None,
            "goodput": self.goodput.to_json() if self.goodput else None,
            "restarts": self.restarts.to_json(),
            "restored": dict(self.restored) or None,
            gangs.STATUS_FIELD: dict(self.gang) or None,
            "firstFailure": dict(self.first_failure) or None,
            # Earlier versions do not know `others`: they would take a whole group for one at attempt 0, and make it a
            # second time. A group was never restarted without an incident.
            "incident": self.incident.to_json(for_earlier=not self.attempts.others) if self.incident else None,
            "attempts": self.attempts.to_json() or None,
            "finished": finished.to_json(self.finished) or None,
            "workers": self.workers.to_json() if self.workers else None,
            "allCreated": self.all_created,
            "queue": self.queue.to_json() if self.queue else None,
        }

    @property
    def ended(self) -> bool:
        """Whether the job has ended, well or not."""
        return self.phase in ENDED

    def went_on_after(self, moment: datetime) -> bool:
        """Whether the job was suspended after this moment, and is active again."""
        return self.active is not None and self.active.went_on_after(moment)

    def ever(self, type_: str) -> bool:
        """Whether this condition holds or has held."""
        return any(condition["type"] == type_ for condition in self.conditions)


WRITTEN = frozenset(Status()._fields())
"""The fields of the status that this version knows."""


def set_phase(status: Status, phase: Phase, reason: str, message: str, now: datetime) -> Status:
    """Set phase, reason and message, and the condition of the phase's name; the other phases' conditions turn
    False."""
    conditions = status.conditions
    for one in PHASE_CONDITIONS:
        conditions = with_condition(
            conditions, one.value, one is phase, reason, message, now, status.observed_generation
        )
    return replace(
        status,
        phase=phase,
        reason=reason,
        message=message,
        conditions=conditions,
        start_time=status.start_time or times.rfc3339(now),
        # To the second, as it will be read back.
        completion_time=now.replace(microsecond=0) if phase in ENDED else status.completion_time,
    )


def set_condition(status: Status, type_: str, holds: bool, reason: str, message: str, now: datetime) -> Status:
    """Set one condition that is no phase."""
    conditions = with_condition(status.conditions, type_, holds, reason, message, now, status.observed_generation)
    return replace(status, conditions=conditions)


def confirm_phase(status: Status) -> Status:
    """Say of an ended job's conditions that they hold for the observed generation too."""
    now = {"observedGeneration": status.observed_generation}
    ours = (*PHASE_CONDITIONS, COMPLETE, CHECKPOINTS_KEPT)
    confirmed = tuple({**one, **now} if one["type"] in ours else one for one in status.conditions)
    return replace(status, conditions=confirmed)


def bump_attempts(status: Status, tasks: Iterable[Task], everyone: Iterable[Task]) -> Status:
    """Give each task its next attempt. `everyone` are all tasks of the job."""
    attempts = status.attempts.bumped((task.id for task in tasks), (task.id for task in everyone))
    return replace(status, attempts=attempts, all_created=False)


def count_restart(
    status: Status, cause: str, instead_of: str | None = None, restarts_moved: int = 1, *, number: int = 1
) -> Status:
    """Count a restart, or that `number` of them, under its cause; `instead_of` is the cause under which the same
    incident was counted before, and `restarts_moved` how many it was counted as."""
    restarts, causes = status.restarts, dict(status.restarts.causes)
    if instead_of is not None:
        causes[instead_of] = causes.get(instead_of, 0) - restarts_moved
    causes[str(cause)] = causes.get(cause, 0) + (restarts_moved if instead_of else number)
    total = restarts.total if instead_of else restarts.total + number
    causes = {name: count for name, count in causes.items() if count > 0}
    return replace(status, restarts=replace(restarts, total=total, causes=causes))


def count_tasks(status: Status, views: Iterable[TaskView]) -> Status:
    """Write how many tasks are up, the tasks by role and state, and which have done their part."""
    views = tuple(views)
    ready = f"{sum(view.up for view in views)}/{len(views)}"
    done = {view.task.id: view.attempt for view in views if view.state is PodState.SUCCEEDED}
    return replace(status, ready=ready, replica_statuses=replica_statuses(views), finished=done)


def replica_statuses(views: Iterable[TaskView]) -> dict[str, dict[str, int]]:
    """Tasks by role and state: total, and active, pending, succeeded, failed where above 0."""
    counts: dict[str, dict[str, int]] = {}
    for (role, state), number in Counter((view.task.role, view.state) for view in views).items():
        counted = counts.setdefault(role.value, {"replicas": 0})
        counted["replicas"] += number
        if name := COUNTED_AS.get(state):
            counted[name] = counted.get(name, 0) + number
    return counts
