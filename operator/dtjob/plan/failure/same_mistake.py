# SPDX-License-Identifier: Apache-2.0
"""A program that fails twice in the same way before its first step has a mistake. A restart does not help.

An error of the trainer's own that only another program corrects ends the job at once, whenever it comes: its supervisor
says so (`ProgramEnd.permanent`). Examples are an argument of `fit` or a call that is refused after training.

A pod's supervisor says whether it failed before its first step (`ProgramEnd`). If the image is the user's own, nobody
knows. If the job has ever done a step, none of this counts against the program. What it restores or reads may be away
for a while. Disruptions, lost peers, kills from outside, and errors of connections or of storage that is away do not
count either. All tasks run one program, so it may be another task that fails the second time. A suspension between the
two makes the second a first: memory, volumes and nodes may have been changed meanwhile. A first step may be made while
no operator looks, in a pod that is gone by now. Only the checkpoint that later pods go on from shows it.
"""

import signal
from collections.abc import Iterable, Mapping
from typing import Any

from dtjob.api.status.block import whole
from dtjob.api.status.internal import Mistake, ProcessStart
from dtjob.objects.exit_codes import COULD_NOT_KILL, RESTARTED_IN_VAIN, signal_of
from dtjob.plan.diagnosis.restored import start_of
from dtjob.plan.draft import Draft
from dtjob.plan.failure.cause import end_of
from dtjob.plan.failure.decisions import GiveUp, Wait
from dtjob.plan.failure.lost_peers import wait_for_late_reports
from dtjob.plan.failure.rules import ruled
from dtjob.plan.record.failure import Cause, Failure
from dtjob.plan.seen.children import PodState
from dtjob.plan.seen.situation import Situation

REASON = "ProgramFailed"

NOT_THE_PROGRAMS = (RESTARTED_IN_VAIN, COULD_NOT_KILL)
"""Exit codes of the supervisor itself."""

OF_ITS_OWN = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGSYS)
"""Signals that a process brings upon itself. The others come from outside."""

ABORTED = signal.SIGABRT
"""TensorFlow may end itself with this signal if it loses a peer. So in a job of several tasks the last log line must be
the same both times, and say nothing of peers."""


def failed_for_good(situation: Situation, failed: Iterable[Failure]) -> GiveUp | Wait | None:
    """The end of a job over one of these failures, if no restart can help, whatever else has failed; else None. The
    user's own rules come first."""
    for failure in failed:
        if failure.cause is not Cause.ERROR or not failure.end.permanent:
            continue
        if ruled(situation, failure).of_a_rule is None:
            return wait_for_late_reports(situation, failure) or GiveUp(
                failure, _why(failure, ", and a restart does not help"), REASON
            )
    return None


def program_failed(situation: Situation, first: Failure) -> GiveUp | None:
    """The end of a job over the failure `first`; else None. The incident before must be an equal failure, and both must
    come before the job's first step.

    The user's own rules come first: the caller has asked them.
    """
    mistake, previous = mistake_of(situation, first), situation.status.internal.incident
    if mistake is None or previous is None or previous.cause != first.cause or previous.mistake != mistake:
        return None
    if situation.status.went_on_after(previous.started_at):
        return None
    return GiveUp(first, _why(first, " twice before its first step"), REASON)


def mistake_of(situation: Situation, first: Failure) -> Mistake | None:
    """What the failure of the next incident is compared with, if the program may have caused `first`; else None."""
    if situation.status.first_step_time or first.end.stepped is not False or first.exit_code is None:
        return None
    if not _may_be_the_programs(situation, first):
        return None
    aborted = first.cause is Cause.SIGNAL and signal_of(first.exit_code) == ABORTED and len(situation.training) > 1
    return Mistake(exit_code=first.exit_code, exception=first.end.abort if aborted else first.end.alike)


def note_first_step(draft: Draft) -> None:
    """Write the time of the job's first step into the status. It stays there."""
    if not draft.status.first_step_time and _has_stepped(draft.situation):
        draft.status = draft.status.but(first_step_time=whole(draft.now))


def _may_be_the_programs(situation: Situation, first: Failure) -> bool:
    match first.cause:
        case Cause.OOM_KILLED:
            return True
        case Cause.ERROR:
            return first.exit_code not in NOT_THE_PROGRAMS and not first.end.transient
        case Cause.SIGNAL:
            number, alone = signal_of(first.exit_code or 0), len(situation.training) == 1
            return number in OF_ITS_OWN and (alone or number != ABORTED or bool(first.end.abort))
        case _:
            return False


def _has_stepped(situation: Situation) -> bool:
    """Whether the chief reports a step that it did not restore, or a failed pod shows one at its end."""
    report, status = situation.chief_report, situation.status
    restored = status.restored.step if status.restored else 0
    if report.get("stepped") is True or status.step > restored:
        return True
    if _went_on_from_more(situation, report):
        return True
    ends = [(view, end_of(view)) for view in situation.training if view.state is PodState.FAILED]
    known = situation.written.restored.step if situation.written.restored else 0
    return any(end.stepped is True or (view.attempt > 0 and (end.restored or 0) > known) for view, end in ends)


def _went_on_from_more(situation: Situation, report: Mapping[str, Any]) -> bool:
    """Whether the chief restored a later step than any earlier start of it is known to have: steps were done while no
    operator looked. If none is known, they may be those of another job with the same directory."""
    earlier, start = situation.written.restored, start_of(report)
    is_known = start in (ProcessStart(), situation.written.internal.chief_start)
    return not is_known and report.get("restoredStep", 0) > (earlier.step if earlier else 0)


def _why(first: Failure, how: str) -> str:
    """That the program failed, `how`, over what, where, and what to do."""
    number = signal_of(first.exit_code or 0)
    what, where = first.end.exception, f"{first.task.id}, exit code {first.exit_code}"
    advice = "correct the program and create the job again"
    if first.cause is Cause.OOM_KILLED:
        what, where = "out of memory", f"OOMKilled; {where}"
        advice = "give its container more memory (resources.limits.memory) or use less, and create the job again"
    elif not what and first.cause is Cause.SIGNAL and number:
        what = signal.Signals(number).name
    elif not what:
        what, where = f"exit code {first.exit_code}", first.task.id
    return f"the program failed{how}: {what} ({where}); {advice}"
