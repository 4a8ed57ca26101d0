# SPDX-License-Identifier: Apache-2.0
"""What the reason of each Kubernetes Event of a job means: the text of docs/reference/events.md.

`tests/unit/test_reasons.py` compares the table with the code, so that none is missing and none is left over.
"""

from collections.abc import Mapping
from dataclasses import dataclass

NORMAL, WARNING = ("Normal",), ("Warning",)
EITHER = (*NORMAL, *WARNING)


@dataclass(frozen=True)
class EventMeaning:
    """The types that Events of a reason may have, and what the reason means."""

    types: tuple[str, ...]
    meaning: str


EVENTS: Mapping[str, EventMeaning] = {
    "SuccessfulCreate": EventMeaning(NORMAL, "The operator created pods. The message names them."),
    "SuccessfulDelete": EventMeaning(NORMAL, "The operator deleted pods. The message names them."),
    "FailedCreate": EventMeaning(WARNING, "The API server refused pods. The message has its answer."),
    "Blocked": EventMeaning(WARNING, "An object of the job cannot be created. The operator tries again."),
    "ImageMissing": EventMeaning(WARNING, "`spec.image` is left out, and the operator has no default image."),
    "InvalidSpec": EventMeaning(WARNING, "The operator cannot read the stored spec. The message names the field."),
    "Admitted": EventMeaning(NORMAL, "Kueue admitted the job."),
    "Evicted": EventMeaning(NORMAL, "Kueue took the quota of the job back. The message has the reason."),
    "Suspended": EventMeaning(NORMAL, "The pods of the job are told to end. The message says why."),
    "Resumed": EventMeaning(
        EITHER,
        "The job continues after a suspension, or training continues from a checkpoint. It is a warning if a newer "
        "checkpoint could not be read.",
    ),
    "StartedOver": EventMeaning(
        EITHER,
        "Training began again at step 0 after a restart. It is a warning if the job has `spec.checkpoint`.",
    ),
    "Restarting": EventMeaning(
        EITHER,
        "Training restarts. A warning has the failure. A normal event adds to an earlier one, such as the cause of a "
        "failure that showed later.",
    ),
    "Crashed": EventMeaning(
        WARNING, "A signal ended a training process, and its supervisor started it again in its pod."
    ),
    "DataWorkerRestarting": EventMeaning(WARNING, "A data worker is created again. The message has its failure."),
    "EvaluatorRestarting": EventMeaning(
        EITHER,
        "The evaluator is created again. A warning has its failure. Otherwise it moves to another node.",
    ),
    "EvaluationGivenUp": EventMeaning(WARNING, "The last checkpoint is not evaluated. The message says why."),
    "Resizing": EventMeaning(NORMAL, "The number of workers changes: the tasks save and end."),
    "Resized": EventMeaning(NORMAL, "Training continues with another number of workers."),
    "TasksUnreachable": EventMeaning(
        WARNING, "All tasks run, but some could not reach the chief for 30 seconds. Training waits."
    ),
    "StatusUnreachable": EventMeaning(
        WARNING, "The operator could not read the chief's status for 60 seconds. Training continues."
    ),
    "CheckpointsNotKept": EventMeaning(
        WARNING, "Checkpoints end with the pod that writes them, or they are on one node only."
    ),
    "Repaired": EventMeaning(
        NORMAL, "The Service, NetworkPolicy or PodGroup of the job differed or was missing, and was repaired."
    ),
    "InternalError": EventMeaning(
        WARNING, "The operator had an error with this job three times in a row. It tries again."
    ),
    "NothingToTrain": EventMeaning(
        WARNING, "The job found the checkpoint of a run that had ended, and trained nothing."
    ),
    "NothingTrained": EventMeaning(WARNING, "The program ended with exit code 0 and trained no step."),
    "WeightsNotFinite": EventMeaning(WARNING, "Training ended with weights that hold NaN or infinity."),
    "Succeeded": EventMeaning(NORMAL, "Training has ended with success."),
    "Failed": EventMeaning(WARNING, "The job has failed. The message says why."),
    "DeadlineExceeded": EventMeaning(WARNING, "The job was active for more than `spec.activeDeadlineSeconds`."),
    "StartDeadlineExceeded": EventMeaning(WARNING, "Not all tasks that train ran within `spec.startDeadlineSeconds`."),
}
