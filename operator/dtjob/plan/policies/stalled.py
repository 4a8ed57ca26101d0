"""Stalled: a task whose supervisor is silent while the others wait for it cannot end its container by itself.

That training stands still is the word of a supervisor which waits, and ends its own container over it; no silence
towards the operator counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from dtjob.objects.topology import Task
from dtjob.plan.children import PodState
from dtjob.plan.failure import Cause, Failure
from dtjob.plan.situation import Situation


def silent_stragglers(situation: Situation, failed: Iterable[Failure]) -> list[Task]:
    """The tasks that run and that one of these failures waited for: they are replaced with it."""
    named = {failure.end.straggler for failure in failed if failure.cause is Cause.STALLED}
    named -= {failure.task.id for failure in failed}
    if not named:
        return []
    return [view.task for view in situation.training if view.task.id in named and view.state is PodState.RUNNING]
