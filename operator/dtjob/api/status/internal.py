# SPDX-License-Identifier: Apache-2.0
"""`status.internal`: what the operator remembers for itself between two looks at a job.

An incident begins with a failure. It ends when training has resumed and saved a newer checkpoint, or when all tasks
have run for a while. Failures of survivors until then are part of it.
"""

from enum import StrEnum

from pydantic import AwareDatetime

from dtjob.api.status.attempts import Attempts, Finished
from dtjob.api.status.block import Int32, Int64, Message, Name, Seconds, StatusBlock, Time


class Errors(StatusBlock):
    """Charged incidents soon after each other, all of which the loss of one peer would explain."""

    began: Time
    """When the first of them began."""
    count: Int32
    """How many they are."""
    attempts: Attempts
    """The attempt that each task was at when the first of them began."""


class Mistake(StatusBlock):
    """A failure that may be the program's own fault, as a second failure is compared with it."""

    exit_code: Int32 = 0
    """The exit code."""
    exception: Message = ""
    """The exception without numbers and the like. Of an abort in a job of several tasks, the last line of the log."""
    location: Message = ""
    """The line of the program that the exception came through; empty if that is not known."""
    step: Int64 = -1
    """How far training had come: the step at which it failed, or the newest checkpoint if that is newer; -1 if neither
    is known."""


class Incident(StatusBlock):
    """The latest incident, which is a failure with those that follow from it, and what came before it."""

    started_at: Time
    """When its first failure was seen."""
    number: Int32 = 0
    """Its number in `status.incidents`."""
    cause: Name
    """The kind of its first failure: a `Cause`, or a word that this version does not know."""
    not_before: Time
    """No pod is created before this moment."""
    charged: Int32 = 0
    """Charged incidents since the last newer checkpoint."""
    counted: Int32 = 0
    """Charged incidents in the job's whole life. failurePolicy.maxRestarts limits them."""
    uncharged: Int32 = 0
    """Incidents that were not charged, since the last newer checkpoint or long run."""
    in_a_row: Int32 = 0
    """Incidents of any kind, since the last newer checkpoint or long run."""
    checkpoint_step: Int64 = -1
    """The newest checkpoint when the budget was last refilled."""
    attempts: Attempts = Attempts()
    """The attempt that each task was at when it began."""
    ends_at: Time | None = None
    """From when on failures belong to the next incident. None: training has not resumed."""
    action: Name | None = None
    """What a rule of failurePolicy.rules said to do about it; None if none did."""
    errors: Errors | None = None
    """The repeated errors that end with it. None if its cause is another or has no peer to blame."""
    mistake: Mistake | None = None
    """Its first failure, if that may be the program's own fault. A disruption keeps that of the incident before it."""


class Doing(StrEnum):
    """What a job was at when its time was counted last."""

    WAITING_FOR_PODS = "waitingForPods"
    BACKOFF = "backoff"
    STARTING = "starting"
    RESTARTING = "restarting"
    TRAINING = "training"
    ENDING = "ending"
    SUSPENDED = "suspended"


class Spent(StatusBlock):
    """What the chief task's supervisor reports of its own time, in seconds and steps (contract.md: `spent`)."""

    attempt: Int32 = -1
    """The attempt of the chief task that reported it; -1: none has reported anything."""
    incarnation: Int32 = 0
    """Which of its training processes has reported it."""
    from_step: Int64 = 0
    kept_steps: Int64 = 0
    kept: Seconds = 0.0
    redone_steps: Int64 = 0
    redone: Seconds = 0.0
    saving: Seconds = 0.0

    @property
    def last_step(self) -> int:
        """The step that it has come to."""
        return self.from_step + self.kept_steps

    @property
    def seconds(self) -> float:
        """All time that it accounts for."""
        return self.kept + self.redone + self.saving


class Counted(StatusBlock):
    """How far `status.goodput` is counted."""

    until: AwareDatetime
    """All time before this is counted, by the operator's clock."""
    doing: Doing
    """What the job was at then."""
    reported: Spent = Spent()
    """What of the supervisor's own account is counted."""


class ProcessStart(StatusBlock):
    """One start of the chief's training process."""

    attempt: Int32 = 0
    """The attempt at the chief."""
    incarnation: Int32 = 0
    """Which of the training processes in the pod of that attempt, counted from 0."""


class Crashes(StatusBlock):
    """How many crashes in containers that go on were counted, of those that the chief's supervisor tells of."""

    attempt: Int32
    """The attempt at the chief."""
    count: Int32


class Internal(StatusBlock):
    """What the operator remembers for itself. It may change with any version: do not read it. If it is lost, the job
    goes on, and only its counts for restart limits begin again."""

    attempts: Attempts = Attempts()
    """The attempt of each task."""
    all_created: bool | None = None
    """Whether every current attempt has had its pod, so that one that is missing was deleted."""
    made_before: Attempts | None = None
    """The attempts that have had their pods, if only some tasks' current ones have. A task whose pod was never made is
    at an earlier one. None if `all_created`, or if none has had its pod."""
    finished: Finished = {}
    """The attempt of each task that has finished, by its id: its pod may go, and is not made again."""
    incident: Incident | None = None
    """The latest incident, and what came before it."""
    crashes: Crashes | None = None
    """The crashes in containers that go on that are counted in `status.restarts`."""
    chief_start: ProcessStart | None = None
    """The start of the chief's training process that `status.restored` speaks of."""
    goodput: Counted | None = None
    """How far `status.goodput` is counted."""

    @property
    def made(self) -> Attempts | None:
        """The attempts that have had their pods. None if that is not known."""
        return self.attempts if self.all_created else self.made_before

    def had_pod(self, task_id: str) -> bool:
        """Whether the pod of this task's current attempt has been there. One that is missing was deleted."""
        return self.made is not None and self.made.of(task_id) == self.attempts.of(task_id)
