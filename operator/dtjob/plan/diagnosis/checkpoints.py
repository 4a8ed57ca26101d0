# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: whether they outlive the chief's pod, and from which one training really continued."""

from collections.abc import Collection, Mapping
from typing import Any

from dtjob.api.status.block import whole
from dtjob.api.status.internal import ProcessStart
from dtjob.api.status.progress import Restored
from dtjob.objects.pod.storage import keeping
from dtjob.objects.topology import Task
from dtjob.plan.record.incidents import note_resumed
from dtjob.plan.record.status import CHECKPOINTS_KEPT, condition, set_condition
from dtjob.plan.seen.progress import saved_checkpoint
from dtjob.plan.seen.situation import Draft, Situation

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
    if (found and found.kept) or (situation.chief.task not in replaced and _is_of_the_chief(situation, step)):
        return f" from the checkpoint at step {step} or a later one"
    if found is None:  # the program has told of one, though the job has no `checkpoint`
        return f"; where the program keeps its checkpoint at step {step} is not known"
    if found.kept is None:
        return f"; the checkpoint at step {step} is on the node of the chief's earlier pod"
    return f" at step 0, as the checkpoint at step {step} ends with the chief's pod"


def _is_of_the_chief(situation: Situation, step: int) -> bool:
    """Whether the present pod of the chief has written the checkpoint at this step, or has restored it. A new pod may
    not have told of anything yet."""
    start = situation.status.internal.chief_start or ProcessStart()
    saved = saved_checkpoint(situation.chief_report)
    return start.attempt == situation.chief.attempt or (saved is not None and saved.step >= step)


RESUMED, STARTED_OVER = "Resumed", "StartedOver"
"""Reasons of the events."""


def note_restored(draft: Draft) -> None:
    """Note what the chief's newest training process has restored, and tell users if that is news.

    A checkpoint that it did not find does not exist any more, whatever was reported earlier.
    """
    situation = draft.situation
    report = situation.chief_report
    step, start = report.get("restoredStep"), start_of(report)
    status, known = situation.status, situation.status.internal.chief_start
    begins = start == ProcessStart() and known is None and step == 0
    if step is None or start == known or begins:
        return
    noted = status.remembering(chief_start=start)
    if known is None and status.restored is not None and status.restored.step == step:
        draft.status = note_resumed(noted, step)  # what was remembered of it is lost: what was saved since is no loss
        return
    before = situation.written
    nothing_lost = not step and before.checkpoint_step < 0 and not before.step
    if not nothing_lost:
        _tell(draft, step, before.checkpoint_step)
    restored = (status.restored or Restored(step=step, time=situation.now)).but(step=step, time=whole(situation.now))
    noted = noted.but(restored=restored, checkpoint=saved_checkpoint(report))
    draft.status = note_resumed(noted, step)


def start_of(report: Mapping[str, Any]) -> ProcessStart:
    """Which start of the training process the report speaks of."""
    return ProcessStart(attempt=report.get("attempt", 0), incarnation=report.get("incarnation", 0))


def _tell(draft: Draft, step: int, newest: int) -> None:
    """`newest` is the checkpoint from which it should have gone on."""
    lost = f", and not from step {newest}, whose checkpoint was not there or could not be read" if newest > step else ""
    again = "Training began again at step 0"
    if step:
        words = f"Training went on from the checkpoint at step {step}{lost}"
        draft.add_event("Warning" if lost else "Normal", RESUMED, words)
    elif keeping(draft.situation.group_job, draft.situation.defaults) is None:
        draft.add_event("Normal", STARTED_OVER, f"{again}; spec.checkpoint would have it go on")
    else:
        draft.add_event("Warning", STARTED_OVER, f"{again}{lost or ': there was no checkpoint yet'}")
