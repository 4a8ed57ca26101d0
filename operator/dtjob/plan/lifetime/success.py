# SPDX-License-Identifier: Apache-2.0
"""Success: the chief task exits with 0, or under AllWorkers the chief and all workers do."""

from collections.abc import Mapping
from typing import Any

from dtjob.api.job import SuccessPolicy
from dtjob.api.phase import Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.internal import ProcessStart
from dtjob.plan.actions import Event
from dtjob.plan.diagnosis.restored import start_of
from dtjob.plan.draft import Draft
from dtjob.plan.record.status import set_phase
from dtjob.plan.seen.children import PodState
from dtjob.plan.seen.situation import Situation

NOT_FINITE = "WeightsNotFinite"
"""The reason of the event about a model that nobody can use."""
NOTHING_TO_TRAIN = "NothingToTrain"
"""The reason of the event about a job that found a run that had ended."""


def succeeded(situation: Situation) -> bool:
    """Whether training has succeeded: the chief task exited with 0. That is worker 0 if there is no chief, as in TFJob.
    Under AllWorkers, every worker did, and the chief if there is one."""
    needed = [situation.chief]
    if situation.group_job.spec.success_policy is SuccessPolicy.ALL_WORKERS:
        needed += [view for view in situation.training if view.task.role is Role.WORKER]
    return all(view.state is PodState.SUCCEEDED for view in needed)


def succeed(draft: Draft) -> None:
    """End the job well. Users are told, too, if it has trained nothing or if its weights are no numbers."""
    message, warned = _words_of_success(draft.situation)
    draft.status = set_phase(draft.status, Phase.SUCCEEDED, "Completed", message, draft.now)
    draft.add_event("Normal", Phase.SUCCEEDED.value, "Training has ended")
    draft.events += warned


def _words_of_success(situation: Situation) -> tuple[str, list[Event]]:
    """The message of a job that succeeds, and an event if it has trained nothing, or if the chief reports that its
    weights are no numbers."""
    report = situation.chief_report
    if (step := _trained_before(report)) is not None:
        return _nothing_left(situation, step)
    found = report.get("weights")
    if found is None:
        return "training has ended", []
    words = f"training has ended, but the weights of the model hold {found}"
    advice = "look for a loss that is no number, lower the learning rate, or clip gradients"
    return words, [Event("Warning", NOT_FINITE, f"The weights of the model hold {found}: {advice}")]


def _trained_before(report: Mapping[str, Any]) -> int | None:
    """The step of the checkpoint that another run has left, if the first process of this job found nothing left to
    train.

    A later process may have found what an earlier one of this job has trained.
    """
    step = report.get("restoredStep")
    first = start_of(report) == ProcessStart() and report.get("stepped") is False
    return step if first and step and report.get("step") == step else None


def _nothing_left(situation: Situation, step: int) -> tuple[str, list[Event]]:
    checkpoint = situation.group_job.spec.checkpoint
    storage = checkpoint.storage if checkpoint else None
    where = (storage.uri or storage.mount_path) if storage else "its storage"
    words = f"nothing was left to train: the job found a checkpoint of step {step} in {where}, of a run that has ended"
    advice = "raise the number of epochs or steps to train on, or use another checkpoint.storage to train again"
    event = Event("Warning", NOTHING_TO_TRAIN, f"{words[0].upper()}{words[1:]}; {advice}")
    return f"training has ended: {words}; {advice}", [event]
