# SPDX-License-Identifier: Apache-2.0
"""Success: the chief task exits with 0, or under AllWorkers the chief and all workers do."""

from collections.abc import Mapping
from typing import Any

from dtjob.api.job import SuccessPolicy
from dtjob.api.phase import Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.internal import ProcessStart
from dtjob.plan.diagnosis.restored import start_of
from dtjob.plan.draft import Draft
from dtjob.plan.record.incidents import close_incident
from dtjob.plan.record.status import set_phase
from dtjob.plan.seen.children import PodState
from dtjob.plan.seen.situation import Situation

NOT_FINITE = "WeightsNotFinite"
"""The reason of the event about a model that nobody can use."""
NOTHING_TO_TRAIN = "NothingToTrain"
"""The reason of the event about a job that found a run that had ended."""
NOTHING_TRAINED = "NothingTrained"
"""The reason of the event about a job whose program ended with 0 before its first step."""


def succeeded(situation: Situation) -> bool:
    """Whether training has succeeded: the chief task exited with 0. That is worker 0 if there is no chief, as in TFJob.
    Under AllWorkers, every worker did, and the chief if there is one."""
    needed = [situation.chief]
    if situation.group_job.spec.success_policy is SuccessPolicy.ALL_WORKERS:
        needed += [view for view in situation.training if view.task.role is Role.WORKER]
    return all(view.state is PodState.SUCCEEDED for view in needed)


def succeed(draft: Draft) -> None:
    """End the job well. Users are told, too, if it has trained nothing or if its weights are no numbers."""
    report, message = draft.situation.chief_report, "training has ended"
    draft.add_event("Normal", Phase.SUCCEEDED.value, "Training has ended")
    if (step := _trained_before(report)) is not None:
        words = f"nothing was left to train: the job found a checkpoint of step {step} in {_storage(draft.situation)}"
        words += ", of a run that has ended; raise the number of epochs or steps to train on, or"
        words += f" {draft.situation.defaults.anew} to train again"
        message = f"training has ended: {words}"
        draft.add_event("Warning", NOTHING_TO_TRAIN, f"{words[0].upper()}{words[1:]}")
    elif report.get("stepped") is False and not draft.status.first_step_time and not report.get("restoredStep"):
        words = "the program ended with exit code 0 and trained no step; look in its log for why it calls neither fit "
        words += "nor train"
        message = f"training has ended: {words}"
        draft.add_event("Warning", NOTHING_TRAINED, f"{words[0].upper()}{words[1:]}")
    elif (found := report.get("weights")) is not None:
        message = f"training has ended, but the weights of the model hold {found}"
        advice = "look for a loss that is no number, lower the learning rate, or clip gradients"
        draft.add_event("Warning", NOT_FINITE, f"The weights of the model hold {found}: {advice}")
    closed = close_incident(draft.status, draft.now)
    draft.status = set_phase(closed, Phase.SUCCEEDED, "Completed", message, draft.now)


def _trained_before(report: Mapping[str, Any]) -> int | None:
    """The step of the checkpoint that another run has left, if the first process of this job found nothing left to
    train.

    A later process may have found what an earlier one of this job has trained.
    """
    step = report.get("restoredStep")
    first = start_of(report) == ProcessStart() and report.get("stepped") is False
    return step if first and step and report.get("step") == step else None


def _storage(situation: Situation) -> str:
    """Where the job's checkpoints are."""
    checkpoint = situation.group_job.spec.checkpoint
    storage = checkpoint.storage if checkpoint else None
    if storage is None:
        return situation.defaults.checkpoints or "its storage"
    return storage.uri or situation.defaults.checkpoints or storage.mount_path
