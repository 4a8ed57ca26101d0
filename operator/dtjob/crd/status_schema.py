"""The schema of `status`: loose, as only the operator writes it, but described for `kubectl explain`."""

from __future__ import annotations

from typing import Any

from dtjob.api.phase import Phase
from dtjob.crd.schema import PRESERVE, Schema


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _whole(description: str) -> Schema:
    return {"type": "integer", "description": description}


def _number(description: str) -> Schema:
    return {"type": "number", "description": description}


def _time(description: str) -> Schema:
    return {"type": "string", "format": "date-time", "description": description}


def _block(description: str, **properties: Any) -> Schema:
    """An object of which more may be written than is described."""
    block: Schema = {"type": "object", "description": description, PRESERVE: True}
    return block | ({"properties": properties} if properties else {})


def _tasks(description: str) -> Schema:
    """A list of tasks, grouped by role and attempt."""
    group = _block(
        "Tasks of one role at one attempt.",
        role=_text("Their role."),
        attempt=_whole("Their attempt."),
        indexes=_text("Their indexes: 0-3,7."),
    )
    return {
        "type": "array",
        "items": group | {"required": ["role", "attempt", "indexes"]},
        "description": description,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["role", "attempt"],
    }


def _map(description: str, value: Schema) -> Schema:
    """An object whose names are data."""
    return {"type": "object", "description": description, "additionalProperties": value}


def _metrics(description: str) -> Schema:
    return _map(description, {"description": "Its value.", PRESERVE: True})


def _either(*words: str) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def status_schema() -> Schema:
    """The schema of a job's status."""
    return _block(
        "What became of the job; written by the operator.",
        observedGeneration=_whole("The generation of the job that this status speaks of."),
        phase=_text(f"Where the job stands: {_either(*Phase)}."),
        reason=_text("Why it stands there, in one word."),
        message=_text("Why it stands there, in words."),
        conditions=_conditions(),
        image=_text("The operator's default image when the job began, where spec.image is left out: all pods have it."),
        rendezvousPort=_whole("The port where the job's pods, and nobody else, agree on when training starts."),
        ready=_text("Tasks that are up, of all tasks: 3/4."),
        startTime=_time(
            "When the operator first saw the job; of one that was created suspended, when it first went on."
        ),
        firstStepTime=_time("When it first showed that the job has done a training step; left out before that."),
        completionTime=_time("When the job succeeded or failed."),
        active=_active(),
        replicaStatuses=_map("Tasks by role and state.", _replica_status()),
        workers=_workers(),
        progress=_progress(),
        checkpoint=_block(
            "The newest whole checkpoint, from which a restart resumes.",
            step=_whole("Its step."),
            time=_time("When it was written."),
        ),
        evaluation=_evaluation(),
        goodput=_goodput(),
        restarts=_restarts(),
        restored=_restored(),
        gang=_gang(),
        firstFailure=_first_failure(),
        finished=_tasks(
            "Tasks that have done their part, by role and attempt; their pods may go and are not made again."
        ),
        incident=_incident(),
        attempts=_map(
            "How often each task was started anew. A task that is not in it was as often as `others` says, or never "
            "where that is not there.",
            _whole("Its attempt."),
        ),
        allCreated={
            "type": "boolean",
            "description": "Whether every task at its attempt has had its pod: one that is missing then was deleted.",
        },
        queue=_queue(),
    )


def _conditions() -> Schema:
    condition = _block(
        "One condition.",
        type=_text(f"Kind of condition, such as {_either(*list(Phase)[1:], 'Complete')}."),
        status={"type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds."},
        reason=_text("Why, in one word for programs."),
        message=_text("Why, in words for people."),
        lastTransitionTime=_time("When status last changed."),
        observedGeneration=_whole("The generation of the job that it speaks of."),
    )
    return {
        "type": "array",
        "items": condition | {"required": ["type", "status"]},
        "description": "What holds for the job, in the Kubernetes form.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }


def _queue() -> Schema:
    return _block(
        "The job's place in a queue of Kueue; left out where it is in none.",
        name=_text("The LocalQueue."),
        workload=_text("Its Workload, once there is one."),
        uid=_text("The uid of the Workload with whose admission it runs; left out while it waits."),
        clusterQueue=_text("The cluster queue whose quota it runs on; left out while it waits."),
        podSets=_map("What the pods of each role get with that admission.", _block("Such as nodeSelector.")),
    )


def _gang() -> Schema:
    return _block(
        "The gang that the job began with.",
        provider=_text("Whose PodGroup binds the pods: Kubernetes, Volcano or Coscheduling."),
        minAvailable=_whole("How many pods are bound at once, or none."),
    )


def _active() -> Schema:
    return _block(
        "How long the job has been active, by the operator's clock; suspension does not count.",
        since=_time("Since when it is active; not there while it is suspended."),
        seconds=_whole("How long it was active before that."),
        allRanAt=_time("When all tasks that train first ran since then."),
    )


def _replica_status() -> Schema:
    return _block(
        "The tasks of one role.",
        replicas=_whole("All of them."),
        active=_whole("Those that run."),
        pending=_whole("Those that do not run yet."),
        succeeded=_whole("Those that ended well."),
        failed=_whole("Those that failed, or were lost with their node."),
    )


def _goodput() -> Schema:
    return _block(
        "What the job's time went into since all its tasks first ran, without suspension; true as of the last write.",
        percent=_whole("Kept time of all time of which it is known what it went into."),
        seconds=_map(
            "Seconds: kept (steps that stand), unknown, and lost by cause: redone, saving, starting, restarting, "
            "waitingForPods, ending.",
            _number("Seconds."),
        ),
        steps=_map("Steps that the chief told of: kept and redone.", _whole("Steps.")),
        counted={"description": "How far it is counted, as the operator keeps it for itself.", PRESERVE: True},
    )


def _restarts() -> Schema:
    return _block(
        "Restarts by cause.",
        total=_whole("Restarts of training, of any cause."),
        causes=_map("How many restarts each cause had, such as Disruption, OOMKilled or Error.", _whole("Restarts.")),
        evaluator=_whole("Restarts of the evaluator, which training does not notice."),
    )


def _workers() -> Schema:
    return _block(
        "How many workers an elastic job is to have, and how many train together; left out of other jobs.",
        desired=_whole("replicas.worker.count, as last seen."),
        replicas=_whole("The workers of the group that is there."),
        selector=_text("Which pods they are, as a label selector; an HPA reads it."),
        reason=_text("Why they are so many, in one word: AsDesired, Scaled, Unschedulable, NoRoom, Finishing."),
        message=_text("Why, in words."),
        since=_time("When a group of so many began; left out where the job began with it."),
        resizing=_block(
            "The group is saving and ending, for one of another number.",
            to=_whole("The workers of the next group."),
            reason=_text("Why, in one word."),
            message=_text("Why, in words."),
        ),
        unschedulableSince=_time("Since when training waits for tasks that there is no room for."),
        adjustedAt=_time("When the number was last changed, or was to be, for want of room."),
    )


def _restored() -> Schema:
    return _block(
        "What training went on from, when the chief was last seen to start.",
        step=_whole("The step that was restored; 0: it began anew."),
        attempt=_whole("The attempt at the chief."),
        incarnation=_whole("Which of the training processes in the pod of that attempt, counted from 0."),
        time=_time("When this was seen."),
    )


def _first_failure() -> Schema:
    return _block(
        "The first failure of the last incident.",
        task=_text("The task that failed, such as worker-1."),
        pod=_text("Its pod."),
        node=_text("The pod's node."),
        cause=_text("The kind of failure."),
        reason=_text("What happened, in words."),
        exitCode=_whole("The training container's exit code, where it ended."),
        exception=_block(
            "The exception that ended the program, where one did.",
            type=_text("Its class, such as ModuleNotFoundError."),
            message=_text("The line of it that says what is wrong."),
        ),
        beforeFirstStep={
            "type": "boolean",
            "description": "Whether the pod had done no training step; left out where nobody knows.",
        },
        message=_text("The last log lines."),
        rule=_text("The rule of failurePolicy.rules that decided about it, and what it matched; absent for none."),
        time=_time("When it ended, by its node's clock."),
    )


def _incident() -> Schema:
    return _block(
        "The last incident, which is failures that belong together, as the operator keeps it for itself.",
        startedAt=_time("When its first failure was seen."),
        cause=_text("The kind of its first failure, in a word that earlier operators know."),
        countedAs=_text("The kind of its first failure, where that is not cause."),
        notBefore=_time("No pod is made before this."),
        charged=_whole("Incidents since the last newer checkpoint that count against failurePolicy.maxRestarts."),
        uncharged=_whole("Those that do not, since then or the last long run; see failurePolicy.maxDisruptions."),
        inARow=_whole("Incidents of any kind since then."),
        checkpointStep=_whole("The newest checkpoint when the count last began anew; -1: none."),
        attempts=_map("The attempt that each task was at when it began.", _whole("Its attempt.")),
        action=_text("What a rule of failurePolicy.rules said to do about it, where one did."),
        errors=_block(
            "The row of errors that it ends, all of which the loss of one peer would explain.",
            began=_time("When the first of them began."),
            count=_whole("How many they are."),
            attempts=_map("The attempt that each task was at then.", _whole("Its attempt.")),
        ),
        beforeFirstStep=_block(
            "What the program failed with, where that was before the job's first step: the same again fails the job.",
            exitCode=_whole("The exit code."),
            exception=_text("The exception, without numbers and the like."),
        ),
    )


def _progress() -> Schema:
    return _block(
        "How far the training is, as the chief reports it.",
        step=_whole("Steps trained."),
        totalSteps=_whole("Steps to train."),
        epoch=_whole("The epoch that is being trained."),
        loss=_number("Loss at the last report."),
        metrics=_metrics("Metrics at the last report, those of the validation with val_ before their names."),
        stepsPerSecond=_number("Speed."),
        etaSeconds=_number("Seconds to the end at that speed."),
        eta=_text("The same for people: 3m20s."),
        percent=_text("Part that is done: 42%."),
        resume=_text("Whether a restart comes to the same bits: exact or approximate."),
        model=_text("Where the trained model was saved."),
        time=_time("When this was written."),
    )


def _evaluation() -> Schema:
    return _block(
        "What the evaluator last found.",
        step=_whole("The step of the checkpoint it evaluated."),
        metrics=_metrics("The metrics that it has there."),
        best=_block(
            "The best checkpoint so far, by evaluation.best.",
            step=_whole("Its step."),
            value=_number("Its metric."),
        ),
    )
