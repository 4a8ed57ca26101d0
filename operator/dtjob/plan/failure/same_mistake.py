# SPDX-License-Identifier: Apache-2.0
"""A program that fails twice in the same way has a mistake. A restart does not help.

docs/jobs/recovery.md says what counts as such, and when a job fails at the first failure: its supervisor says so
(`ProgramEnd`). A checkpoint of the very step of the first failure is newer than that if training had to come there
again: an epoch is saved after its callbacks, of which one may have failed. All tasks run one program, so it may be
another task that fails the second time. A disruption between two exceptions changes nothing.

A first step may be made while no operator looks, in a pod that is gone by now. Only the checkpoint that later pods go
on from shows it.
"""

import signal
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from dtjob.api.status.block import whole
from dtjob.api.status.internal import Mistake, ProcessStart
from dtjob.objects.exit_codes import COULD_NOT_KILL, RESTARTED_IN_VAIN, signal_of
from dtjob.plan.diagnosis.checkpoints import start_of
from dtjob.plan.failure.cause import end_of
from dtjob.plan.failure.decisions import GiveUp, Wait
from dtjob.plan.failure.lost_peers import wait_for_late_reports
from dtjob.plan.failure.rules import ruled
from dtjob.plan.record.failure import Cause, Failure
from dtjob.plan.seen.children import PodState
from dtjob.plan.seen.situation import Draft, Situation

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
        how = _how_for_good(failure)
        if how and ruled(situation, failure).of_a_rule is None:
            return wait_for_late_reports(situation, failure) or GiveUp(failure, _why(situation, failure, how), REASON)
    return None


def _how_for_good(failure: Failure) -> str:
    """Why no restart can help after this failure, in words; empty if one may help."""
    if failure.cause is not Cause.ERROR:
        return ""
    if failure.end.permanent:
        return ", and a restart does not help"
    if failure.end.trained and _is_an_exception(failure):
        return " after all its training was done"
    return ""


def program_failed(situation: Situation, first: Failure) -> GiveUp | None:
    """The end of a job over the failure `first`; else None. The incident before must be an equal failure, without a
    newer checkpoint since.

    The user's own rules come first: the caller has asked them.
    """
    mistake, before = mistake_of(situation, first), _mistake_before(situation)
    if mistake is None or before is None or mistake != before.but(step=mistake.step):
        return None
    return GiveUp(first, _why(situation, first, " twice in the same way"), REASON)


def mistake_of(situation: Situation, first: Failure) -> Mistake | None:
    """What the failure of the next incident is compared with, if the program may have caused `first`; else None. After
    a disruption that is an exception of the incident before. A crash may have come from the same disruption."""
    if not first.cause.charged:
        before = _mistake_before(situation)
        return before if before and before.location else None
    if first.exit_code is None:
        return None
    if not situation.status.first_step_time and first.end.stepped is False:
        if not _may_be_the_programs(situation, first):
            return None
    elif not _is_an_exception(first):
        return None
    aborted = first.cause is Cause.SIGNAL and signal_of(first.exit_code) == ABORTED and len(situation.training) > 1
    return Mistake(
        exit_code=first.exit_code,
        exception=first.end.abort if aborted else first.end.alike,
        location=first.end.location,
        step=max(situation.status.checkpoint_step, -1 if first.end.step is None else first.end.step),
    )


def _mistake_before(situation: Situation) -> Mistake | None:
    """The mistake of the incident before, if nothing has changed since: no newer checkpoint, and no suspension."""
    previous = situation.status.internal.incident
    mistake = previous.mistake if previous else None
    if previous is None or mistake is None or situation.status.went_on_after(previous.started_at):
        return None
    return None if _came_further(situation, mistake, previous.started_at) else mistake


def _came_further(situation: Situation, mistake: Mistake, since: datetime) -> bool:
    """Whether a checkpoint shows that training has come past this mistake of the incident that began at `since`."""
    step, restored = situation.status.checkpoint_step, situation.status.restored
    came_again = restored is not None and restored.step < step and restored.time > since
    return step > mistake.step or (step == mistake.step and came_again)


def note_first_step(draft: Draft) -> None:
    """Write the time of the job's first step into the status. It stays there."""
    if not draft.status.first_step_time and _has_stepped(draft.situation):
        draft.status = draft.status.but(first_step_time=whole(draft.now))


def _is_an_exception(first: Failure) -> bool:
    """Whether a Python exception of the program ended it, which is not over something that the machine lacks."""
    end = first.end
    return first.cause is Cause.ERROR and bool(end.exception) and not (end.transient or end.exhausted)


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


def _why(situation: Situation, first: Failure, how: str) -> str:
    """That training failed, `how`, over what, where, and what to do."""
    number, again = signal_of(first.exit_code or 0), situation.defaults.again
    what, where = first.end.located, f"{first.task.id}, exit code {first.exit_code}"
    advice = f"correct the program and {again}"
    if first.cause is Cause.OOM_KILLED:
        what, where = "out of memory", f"OOMKilled; {where}"
        advice = f"give its container more memory (resources.limits.memory) or use less, and {again}"
    elif not what and first.cause is Cause.SIGNAL and number:
        what = signal.Signals(number).name
    elif not what:
        what, where = f"exit code {first.exit_code}", first.task.id
    if first.end.permanent:  # it says itself what to write instead, be it in the program or in the manifest
        return f"training failed{how}: {what} ({where})"
    return f"the program failed{how}: {what} ({where}); {advice}"
