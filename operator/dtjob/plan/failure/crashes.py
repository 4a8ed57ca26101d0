# SPDX-License-Identifier: Apache-2.0
"""Crashes: training processes that a signal ended, and that their supervisors started again in the same pods.

No pod shows them. The chief's supervisor tells of those of all its group, and each is counted and told once.
"""

from dtjob.api.status.internal import Crashes
from dtjob.plan.draft import Draft
from dtjob.plan.record.failure import Cause
from dtjob.plan.record.status import count_restart

CRASHED = "Crashed"
"""The reason of the event."""
OUT_OF_MEMORY = "out of memory"
"""What a supervisor adds to a signal that the kernel sent for want of memory."""
MOST_AT_ONCE = 100
"""The most crashes that one look counts. A chief may report any number, and all users share the operator's metrics."""


def note_crashes(draft: Draft) -> None:
    """Count the crashes that the chief tells of and that were not counted yet, and tell of them."""
    situation = draft.situation
    report = situation.chief_report
    reported, status = report.get("crashes", {}), situation.status
    attempt = situation.chief.attempt
    known = status.internal.crashes
    before = known.count if known is not None and known.attempt == attempt else 0
    new = min(reported.get("count", 0) - before, MOST_AT_ONCE)
    if new <= 0:
        return
    cause = Cause.OOM_KILLED if OUT_OF_MEMORY in reported.get("signal", "") else Cause.SIGNAL
    status = count_restart(status, cause, new)
    draft.status = status.remembering(crashes=Crashes(attempt=attempt, count=reported["count"]))
    draft.add_event("Warning", CRASHED, _words(reported, new))


def _words(reported: dict[str, object], new: int) -> str:
    step, others = reported.get("step"), f", and {new - 1} more before it" if new > 1 else ""
    when = "" if step is None else f" after step {step}"
    what = f"{reported.get('task', 'a task')} was killed ({reported.get('signal', 'by a signal')}){when}{others}"
    return f"{what}; its program was started again in place"
