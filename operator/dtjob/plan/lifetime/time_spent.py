# SPDX-License-Identifier: Apache-2.0
"""Time spent: counts what the time of a job goes into, from its pods and the reports of its chief task.

Time counts from when all tasks that train first ran until the job has ended, without that in which it is suspended. It
is counted whenever the status is written for another reason, and never a reason itself. So it is true as of the write,
as the progress beside it. The operator's clock says how much time there is. A supervisor says how long it trained, by a
clock of its own that only runs forward. It gets no more time than there is. The time that it leaves belongs to what the
job was at before. While a supervisor cannot be read, it is unknown. A later report may still account for either.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dtjob.api.phase import Phase
from dtjob.api.status.goodput import GoodputSeconds, GoodputStatus, Part
from dtjob.api.status.internal import Counted, Doing, Spent
from dtjob.api.status.status import Status
from dtjob.plan.diagnosis.reachability import SAID_AFTER
from dtjob.plan.elastic import was_resized_last
from dtjob.plan.failure.budget import is_due, restarts
from dtjob.plan.seen.situation import Situation

AT_WORK = ("training", "saving")
"""States in which a supervisor's training process is within its training."""

_GOES_TO = {
    Doing.WAITING_FOR_PODS: Part.WAITING_FOR_PODS,
    Doing.BACKOFF: Part.WAITING_FOR_PODS,
    Doing.STARTING: Part.STARTING,
    Doing.RESTARTING: Part.RESTARTING,
    Doing.ENDING: Part.ENDING,
}
"""Where time goes that no supervisor trained in, by what the job was at; of a backoff, what is left after it."""

_AFTER_TRAINING = {Doing.ENDING: Part.ENDING, Doing.SUSPENDED: Part.UNKNOWN}
"""Where time goes that no supervisor trained in, if the job trained before, by what the job is at now. All other
such time goes to the restart."""

_CLAIMED_FIRST = (Part.UNKNOWN, Part.RESTARTING, Part.STARTING, Part.WAITING_FOR_PODS, Part.ENDING)
"""The parts in which a supervisor may turn out to have trained, the likeliest first."""

_UP = (Doing.STARTING, Doing.RESTARTING, Doing.TRAINING)
"""What a job is at while all of its tasks run; which of these, its chief's supervisor has to tell."""

NOTHING_REPORTED = Spent()


@dataclass(frozen=True)
class Goodput:
    """The time of one job, and how far it is counted."""

    until: datetime
    """All time before this is counted, by the operator's clock."""
    doing: Doing
    """What the job was at then."""
    seconds: Mapping[Part, float] = field(default_factory=dict)
    kept_steps: int = 0
    redone_steps: int = 0
    reported: Spent = NOTHING_REPORTED
    """What of the supervisor's own account is counted."""

    @property
    def percent(self) -> int | None:
        """The share of kept time in all time whose use is known, in whole percent, rounded down. None before a
        supervisor has reported training."""
        ratio = None if self.reported.attempt < 0 else kept_ratio(self.seconds)
        return None if ratio is None else math.floor(100 * ratio + 1e-6)

    def plus(self, part: Part, seconds: float) -> "Goodput":
        """With more time under one part; never below zero."""
        value = max(0.0, self.seconds.get(part, 0.0) + seconds)
        return replace(self, seconds={**self.seconds, part: value})

    @classmethod
    def of(cls, status: Status, now: datetime) -> "Goodput | None":
        """What the status tells of it; None if nothing is counted yet. Where it does not tell how far it is counted,
        it is counted on from now."""
        said, counted = status.goodput, status.internal.goodput
        if said is None:
            return None
        if counted is None:
            counted = Counted(until=now, doing=Doing.WAITING_FOR_PODS)
        return cls(
            until=counted.until,
            doing=counted.doing,
            seconds=by_part(said.seconds),
            kept_steps=said.steps.kept,
            redone_steps=said.steps.redone,
            reported=counted.reported,
        )

    def written_to(self, status: Status) -> Status:
        """The status with this in it."""
        said = status.goodput or GoodputStatus()
        said = said.but(
            percentage=self.percent,
            # No coarser than what supervisors tell: else many writes would add up to another sum.
            seconds=said.seconds.but(**{name: round(self.seconds.get(part, 0.0), 2) for part, name in _FIELDS.items()}),
            steps=said.steps.but(kept=self.kept_steps, redone=self.redone_steps),
        )
        counted = Counted(until=self.until, doing=self.doing, reported=self.reported)
        return status.but(goodput=said).remembering(goodput=counted)


def kept_ratio(seconds: Mapping[Part, float]) -> float | None:
    """Kept time of all time of which it is known what it went into, 0 to 1; None if none is."""
    known = sum(value for part, value in seconds.items() if part is not Part.UNKNOWN)
    return seconds.get(Part.KEPT, 0.0) / known if known > 0 else None


def by_part(seconds: GoodputSeconds) -> dict[Part, float]:
    """The seconds by part, those without time left out."""
    return {part: value for part, name in _FIELDS.items() if (value := getattr(seconds, name))}


_FIELDS = {part: part.name.lower() for part in Part}
"""The field of each part in `GoodputSeconds`."""


@dataclass(frozen=True)
class Seen:
    """What is seen of a job at one moment, as far as its time is concerned."""

    doing: Doing
    readable: bool
    """Whether its chief's supervisor tells how it is."""
    reported: Spent | None
    """What that one accounts for; None before it has trained."""
    pods_wait_from: datetime | None
    """When the wait before the latest restart was over, and pods were waited for."""


def with_goodput(situation: Situation, status: Status) -> Status:
    """The status, about to be written, with its time counted until now."""
    if situation.group_job.spec.program is None:  # no supervisor tells of the image's own training
        return status
    if situation.written.ended:
        return status
    # No finer than the status keeps seconds, so that they add up.
    now = situation.now.replace(microsecond=situation.now.microsecond // 10_000 * 10_000)
    seen, before = see(situation, status), Goodput.of(status, now)
    if before is None:
        if status.phase is not Phase.RUNNING:
            return status
        before = Goodput(now, seen.doing)  # steps that are reported already count, though their time is not known
    return count(before, seen, now).written_to(status)


def see(situation: Situation, status: Status) -> Seen:
    """What the job is at, by its new status and the last report of its chief task."""
    report, silence = situation.chief_report, situation.children.silences.get(situation.chief.task.id)
    silent = silence is not None and situation.now >= silence.since + SAID_AFTER
    readable = bool(report) and not silent
    return Seen(
        doing=_doing(situation, status, report.get("state") if readable else None),
        readable=readable,
        reported=_reported(report, situation.chief.attempt),
        pods_wait_from=status.internal.incident.not_before if status.internal.incident else None,
    )


def _reported(report: Mapping[str, Any], attempt: int) -> Spent | None:
    """The supervisor's own account. A number that it leaves out is 0."""
    if not (spent := report.get("spent")):
        return None
    names = {"from": "from_step", "keptSteps": "kept_steps", "redoneSteps": "redone_steps"}
    names |= {name: name for name in ("kept", "redone", "saving")}
    numbers: dict[str, Any] = {field: spent.get(name, 0) for name, field in names.items()}
    return Spent(attempt=report.get("attempt", attempt), incarnation=report.get("incarnation", 0), **numbers)


def count(before: Goodput, seen: Seen, now: datetime) -> Goodput:
    """The goodput with the time until `now` counted. A clock that was set back takes nothing away."""
    elapsed = max(0.0, (now - before.until).total_seconds())
    if before.doing is Doing.SUSPENDED:
        return replace(before, until=now, doing=_next(before, seen))
    counted = _take_back(before, seen.reported) if seen.reported else before
    counted, left = _take_reported(counted, seen.reported, elapsed)
    counted = _take_rest(counted, before, seen, left, now)
    return replace(counted, until=now, doing=_next(before, seen))


def _doing(situation: Situation, status: Status, state: object) -> Doing:
    if status.ended:
        return Doing.ENDING
    if status.phase is Phase.SUSPENDED:
        return Doing.SUSPENDED
    if status.phase is not Phase.RUNNING:
        return Doing.WAITING_FOR_PODS if is_due(status.internal.incident, situation.now) else Doing.BACKOFF
    if state in AT_WORK:
        return Doing.TRAINING
    if state == "finished":
        return Doing.ENDING
    return Doing.RESTARTING if restarts(status, situation.now) or _was_resized(status) else Doing.STARTING


def _was_resized(status: Status) -> bool:
    """Whether training was last made anew for another number of workers, after all tasks had run."""
    workers, active = status.workers, status.active
    if workers is None or workers.last_scale_time is None or active is None or active.all_ran_time is None:
        return False
    return was_resized_last(status) and workers.last_scale_time > active.all_ran_time


def _next(before: Goodput, seen: Seen) -> Doing:
    """What the job is at now. If all tasks run and nobody tells, it is as before. A job that trained before and starts
    now is restarting."""
    if not seen.readable and seen.doing in _UP and before.doing in _UP:
        return before.doing
    if seen.doing is Doing.STARTING and before.doing in (Doing.TRAINING, Doing.RESTARTING):
        return Doing.RESTARTING
    return seen.doing


def _take_back(before: Goodput, reported: Spent) -> Goodput:
    """Without the steps that a new pod of the chief task takes up again: its supervisor knows of none before.

    They are the last pod's first, with their share of that pod's time, then those of the time before it.
    """
    last, all_kept = before.reported, (before.kept_steps, before.seconds.get(Part.KEPT, 0.0))
    if last.attempt < 0:
        return before
    if reported.attempt == last.attempt:  # it had to go further back itself
        steps, seconds = _share(all_kept, last.from_step - reported.from_step)
    elif reported.from_step == 0:
        steps, seconds = all_kept
    else:
        back = last.last_step - reported.from_step
        steps, seconds = _share((last.kept_steps, last.kept), back)
        more = _share((all_kept[0] - last.kept_steps, all_kept[1] - last.kept), back - steps)
        steps, seconds = steps + more[0], min(seconds + more[1], all_kept[1])
    seconds = round(seconds, 2)
    left = replace(before, kept_steps=before.kept_steps - steps, redone_steps=before.redone_steps + steps)
    return left.plus(Part.KEPT, -seconds).plus(Part.REDONE, seconds)


def _share(steps: tuple[int, float], number: int) -> tuple[int, float]:
    """So many of these steps, or all, with their part of these seconds."""
    there, seconds = max(0, steps[0]), max(0.0, steps[1])
    taken = min(max(0, number), there)
    return taken, seconds * taken / there if there else 0.0


def _take_reported(before: Goodput, reported: Spent | None, elapsed: float) -> tuple[Goodput, float]:
    """With what the supervisor accounts for since it was last asked, and the seconds that are left to be counted.

    It may have trained in time that stands under another part for want of its word. It gets no more than `elapsed` and
    that.
    """
    if reported is None:
        return before, elapsed
    last = before.reported if before.reported.attempt == reported.attempt else Spent(attempt=reported.attempt)
    there = elapsed + sum(before.seconds.get(part, 0.0) for part in _CLAIMED_FIRST)
    taken = min(max(0.0, reported.seconds - last.seconds), there)
    saving = min(max(0.0, reported.saving - last.saving), taken)
    redone = min(max(0.0, reported.redone - last.redone), before.seconds.get(Part.KEPT, 0.0) + taken - saving)
    counted = replace(
        before,
        reported=reported,
        kept_steps=max(0, before.kept_steps + reported.kept_steps - last.kept_steps),
        redone_steps=before.redone_steps + max(0, reported.redone_steps - last.redone_steps),
    )
    counted = counted.plus(Part.SAVING, saving).plus(Part.REDONE, redone).plus(Part.KEPT, taken - saving - redone)
    more = max(0.0, taken - elapsed)
    for part in _CLAIMED_FIRST:
        claimed = min(more, before.seconds.get(part, 0.0))
        counted, more = counted.plus(part, -claimed), more - claimed
    return counted, max(0.0, elapsed - taken)


def _take_rest(counted: Goodput, before: Goodput, seen: Seen, left: float, now: datetime) -> Goodput:
    """With the seconds in which no supervisor trained, as far as is known."""
    if before.doing is Doing.BACKOFF and seen.pods_wait_from is not None:
        waited = min(left, max(0.0, (now - seen.pods_wait_from).total_seconds()))
        counted, left = counted.plus(Part.RESTARTING, left - waited), waited
    return counted.plus(_part_of_rest(before, seen), left)


def _part_of_rest(before: Goodput, seen: Seen) -> Part:
    trained = before.doing is Doing.TRAINING
    if before.doing in _UP and not seen.readable:
        return Part.UNKNOWN
    # A trainer that tells nothing of its time may be the same process, too.
    process = seen.reported and (seen.reported.attempt, seen.reported.incarnation)
    last = before.reported
    same = process is None or last.attempt < 0 or (last.attempt, last.incarnation) == process
    if trained and seen.doing is Doing.TRAINING and same:
        return Part.UNKNOWN
    if trained:  # the time from its last word on
        return _AFTER_TRAINING.get(seen.doing, Part.RESTARTING)
    return _GOES_TO[before.doing]
