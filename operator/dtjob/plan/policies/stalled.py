"""Stalled: tasks that cannot end their containers, as their supervisors are silent, and for which others wait.

That training stands still is always the word of a supervisor that was heard: of one that waits for another in the
rendezvous, or has ended its own container over it. That a status cannot be read is no stall.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dtjob.objects.topology import Task
from dtjob.plan.children import PodState, node_of
from dtjob.plan.failure import Cause, Failure
from dtjob.plan.situation import Situation


def silent_tasks(situation: Situation) -> Iterator[Failure]:
    """The tasks that run, as their nodes say, and for which the chief says that the group waits: nothing was heard of
    this attempt for failurePolicy.stallTimeoutSeconds, by the chief's clock. A pod that waits for a node has another
    attempt than the one that was heard, or does not run."""
    told = situation.reports.get(situation.chief.task.id, {}).get("silent")
    if situation.job.spec.failure_policy.stall_timeout_seconds is None or not isinstance(told, Mapping):
        return
    for view in situation.training:
        if view.pod is None or view.state is not PodState.RUNNING or view.task == situation.chief.task:
            continue
        if told.get(view.task.id) == view.attempt:
            yield Failure(
                task=view.task,
                cause=Cause.STALLED,
                time=situation.now,
                pod=view.pod["metadata"]["name"],
                node=node_of(view.pod),
                reason="stalled: its supervisor is silent, and its group waits for it",
                message="",
            )


def silent_stragglers(situation: Situation, failed: Iterable[Failure]) -> list[Task]:
    """The tasks that run and that one of these failures waited for: they are replaced with it."""
    named = {failure.end.straggler for failure in failed if failure.cause is Cause.STALLED}
    named -= {failure.task.id for failure in failed}
    if not named:
        return []
    return [view.task for view in situation.training if view.task.id in named and view.state is PodState.RUNNING]
