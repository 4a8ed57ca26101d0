# SPDX-License-Identifier: Apache-2.0
"""What each phase, each condition and each of their reasons means: the text of docs/reference/api.md.

`tests/unit/test_reasons.py` compares the tables with the code, so that none is missing and none is left over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dtjob.api.phase import Phase

PHASES: Mapping[Phase, str] = {
    Phase.PENDING: "Not all tasks that train have run yet.",
    Phase.RUNNING: "All tasks that train run or have finished. ParameterServer also runs without some of its workers.",
    Phase.RESTARTING: "Training ran, and some of its tasks are created again.",
    Phase.SUSPENDED: "The job has no pods, because its user or its queue suspended it.",
    Phase.SUCCEEDED: "Training has ended with success. A job never leaves this phase.",
    Phase.FAILED: "The job has failed and is not tried again. A job never leaves this phase.",
}

REASONS_OF_PHASES: Mapping[Phase | None, Mapping[str, str]] = {
    Phase.PENDING: {
        "WaitingForPods": "Some tasks do not run yet. The message says what they wait for.",
        "ImageMissing": "`spec.image` is left out, and the operator has no default image.",
    },
    Phase.RUNNING: {
        "AllTasksRunning": "Every task that trains runs or has finished.",
        "WorkersMissing": "ParameterServer trains without some of its workers, which are being replaced.",
        "TasksUnreachable": "All tasks run, but some could not reach the chief for 30 seconds. Training waits.",
    },
    Phase.RESTARTING: {
        "Disruption": "A pod was evicted, preempted or drained, or its node was lost.",
        "Deleted": "Somebody deleted a pod.",
        "NotStarted": "A node refused a pod.",
        "OOMKilled": "A container used more memory than its limit.",
        "StorageLimitExceeded": "A pod was evicted because it used more storage than its limits.",
        "Signal": "A signal ended a training process.",
        "Stalled": "Training made no step for `failurePolicy.stallTimeoutSeconds`.",
        "Error": "A program ended with an exit code of its own.",
        "Restarting": "A task failed, and the operator does not know the cause.",
        "Resizing": "The number of workers changes: the tasks save and end.",
        "Resized": "The number of workers has changed: the new tasks start.",
    },
    Phase.SUSPENDED: {
        "JobSuspended": "`spec.suspend` is true. Pods that are left save and end.",
        "Queued": "The job waits for quota in its queue.",
        "QuotaReserved": "The job has quota and waits for the admission checks of its queue.",
        "Admitted": "The queue has admitted the job, and its pods are about to be created.",
        "Deactivated": "`spec.active` of the job's Workload is false.",
        "WorkloadFinished": "Somebody else has marked the job's Workload as finished.",
        "NoKueue": "A label names a queue, and Kueue is not installed or the operator may not read Workloads.",
        "NoPriorityClass": "The priority class that the job names does not exist.",
        "NoWorkload": "The Workload that the job names does not exist, or it belongs to another job.",
    },
    Phase.SUCCEEDED: {"Completed": "Training has ended with success."},
    Phase.FAILED: {
        "MaxRestartsExceeded": "The job needed more restarts than `failurePolicy` allows.",
        "MaxDisruptionsExceeded": "There were more than `failurePolicy.maxDisruptionsWithoutProgress` disruptions.",
        "ProgramFailed": "The program failed twice in the same way, or after all its training was done.",
        "PodFailurePolicy": "A rule of `failurePolicy.rules` has failed the job.",
        "DeadlineExceeded": "The job was active for more than `spec.activeDeadlineSeconds`.",
        "StartDeadlineExceeded": "Not all tasks that train ran within `spec.startDeadlineSeconds`.",
    },
    None: {
        "CannotCreate": "An object of the job cannot be created. The message has the API server's answer.",
        "InvalidSpec": "The operator cannot read the stored spec. The message names the field.",
    },
}
"""Reasons of `status.reason` by phase. None: any phase."""


@dataclass(frozen=True)
class ConditionMeaning:
    """What it means that a condition is True, False or Unknown, and what its reasons mean."""

    meaning: str
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons that the condition has beside those of a phase."""


CONDITIONS: Mapping[str, ConditionMeaning] = {
    "Running": ConditionMeaning(
        "True in phase Running. False in all others. Its reason is the reason of the phase. Always present."
    ),
    "Restarting": ConditionMeaning(
        "True in phase Restarting. Its reason is the reason of the phase. Absent before the first restart."
    ),
    "Suspended": ConditionMeaning(
        "True in phase Suspended, with the reason of the phase. Always present.",
        {"NotSuspended": "The job was never suspended.", "JobResumed": "The job continues after a suspension."},
    ),
    "Complete": ConditionMeaning(
        "True if the job has succeeded, with the reason of the phase. Always present.",
        {"NotFinished": "The job has not ended."},
    ),
    "Failed": ConditionMeaning(
        "True if the job has failed, with the reason of the phase. Always present.",
        {"NotFinished": "The job has not ended."},
    ),
    "Blocked": ConditionMeaning(
        "True if something that the job needs cannot be created. The operator tries again. If the job is suspended, it "
        "is False with the reason of the phase.",
        {
            "CannotCreate": "The API server refuses an object. The message has its answer.",
            "ImageMissing": "`spec.image` is left out, and the operator has no default image.",
            "Created": "All objects have been created.",
            "Resizing": "The number of workers changes. Nothing is created until the tasks have ended.",
            "JobEnded": "The job has ended.",
        },
    ),
    "SpecAccepted": ConditionMeaning(
        "False if the operator cannot read the stored spec. Absent if it always could.",
        {
            "InvalidSpec": "A field has a value that the operator does not accept. The message names it.",
            "Accepted": "The operator can read the spec again.",
        },
    ),
    "CheckpointsKept": ConditionMeaning(
        "True if checkpoints outlive the pod that writes them. Unknown if that depends on the node. Absent if the job "
        "has no `spec.checkpoint`.",
        {
            "Volume": "The volume outlives the pod.",
            "Bucket": "Checkpoints are written to `checkpoint.storage.uri`.",
            "LocalDirectory": "`dtjob run` keeps them in a directory of this machine.",
            "OnOneNode": "The volume is a hostPath, which stays on its node.",
            "EndsWithPod": "Kubernetes deletes the volume with the pod.",
        },
    ),
    "StatusReachable": ConditionMeaning(
        "False if the operator could not read the chief's status for 60 seconds. Its reason is then the kind of error, "
        "such as ConnectTimeout. Unknown while there is no chief to read. Absent before the first such error.",
        {"Answers": "The chief's status can be read.", "JobEnded": "The job has ended."},
    ),
    "EvaluationGivenUp": ConditionMeaning(
        "True if the last checkpoint is not evaluated. Absent otherwise.",
        {
            "EvaluationGivenUp": "The evaluator cannot finish. The message says why.",
            "EvaluatorAtWork": "The evaluator runs after all.",
        },
    ),
    "QuotaReserved": ConditionMeaning(
        "As Kueue writes it to the job's Workload, with Kueue's reasons. Absent if the job is in no queue.",
        {"Pending": "Kueue has not answered yet.", "NoWorkload": "The job has no Workload."},
    ),
    "Admitted": ConditionMeaning(
        "As Kueue writes it to the job's Workload, with Kueue's reasons. Absent if the job is in no queue.",
        {"Pending": "Kueue has not answered yet.", "NoWorkload": "The job has no Workload."},
    ),
    "QueueNameIgnored": ConditionMeaning(
        "True if the label that names a queue was set or changed while the job runs. It applies from the next start.",
        {
            "JobRuns": "The job runs, so the label has no effect yet.",
            "QueueName": "The label has its effect.",
            "JobEnded": "The job has ended.",
        },
    ),
}
