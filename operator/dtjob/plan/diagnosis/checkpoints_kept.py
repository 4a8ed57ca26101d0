# SPDX-License-Identifier: Apache-2.0
"""Checkpoints kept: a condition says whether checkpoints outlive the chief's pod."""

from collections.abc import Collection

from dtjob.objects.pod.keeping import keeping
from dtjob.objects.topology import Task
from dtjob.plan.draft import Draft
from dtjob.plan.record.status import CHECKPOINTS_KEPT, condition, set_condition
from dtjob.plan.seen.situation import Situation

NOT_KEPT = "CheckpointsNotKept"
"""Reason of the event."""


def say_whether_checkpoints_are_kept(draft: Draft) -> None:
    """Set the condition, and tell users once."""
    found = keeping(draft.situation.group_job, draft.situation.defaults)
    if found is None:
        return
    reason, message = found.reason, found.message
    known = condition(draft.status.conditions, CHECKPOINTS_KEPT)
    known_already = found.kept is True or (known is not None and known.reason == reason)
    if not known_already:
        draft.add_event("Warning", NOT_KEPT, message)
    draft.status = set_condition(draft.status, CHECKPOINTS_KEPT, found.kept, reason, message, draft.now, always=True)


def checkpoints_end(situation: Situation, replaced: Collection[Task]) -> bool:
    """Whether the checkpoints end with the pods of these tasks."""
    found = keeping(situation.group_job, situation.defaults)
    return found is not None and found.kept is False and situation.chief.task in replaced


def goes_on_from(situation: Situation, replaced: Collection[Task], step: int) -> str:
    """The end of a sentence: from which step a job continues when these tasks get new pods. `step`: of the newest
    checkpoint known. The tasks may have saved since the last report, and most save before they end."""
    found = keeping(situation.group_job, situation.defaults)
    if found is None or found.kept is True or situation.chief.task not in replaced:
        return f" from the checkpoint at step {step} or a later one"
    if found.kept is None:
        return f"; the checkpoint at step {step} is on the node of the chief's earlier pod"
    return f" at step 0, as the checkpoint at step {step} ends with the chief's pod"
