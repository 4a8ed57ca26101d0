"""The schema of `status`: loose, as only the operator writes it, but described for `kubectl explain`."""

from __future__ import annotations

from dtjob.api.phase import Phase
from dtjob.crd.schema import PRESERVE, Schema
from dtjob.crd.status_values import block, either, map_of, metrics, number, tasks, text, time, whole


def status_schema() -> Schema:
    """The schema of a job's status."""
    return block(
        "What became of the job; written by the operator.",
        observedGeneration=whole("The generation of the job that this status speaks of."),
        phase=text(f"Where the job stands: {either(*Phase)}."),
        reason=text("Why it stands there, in one word."),
        message=text("Why it stands there, in words."),
        conditions=_conditions(),
        image=text("The operator's default image when the job began, where spec.image is left out: all pods have it."),
        ready=text("Tasks that are up, of all tasks: 3/4."),
        startTime=time(
            "When the operator first saw the job; of one that was created suspended, when it first went on."
        ),
        firstStepTime=time("When it first showed that the job has done a training step; left out before that."),
        completionTime=time("When the job succeeded or failed."),
        active=_active(),
        replicaStatuses=map_of("Tasks by role and state.", _replica_status()),
        workers=_workers(),
        progress=_progress(),
        checkpoint=block(
            "The newest whole checkpoint, from which a restart resumes.",
            step=whole("Its step."),
            time=time("When it was written."),
        ),
        evaluation=_evaluation(),
        goodput=_goodput(),
        restarts=_restarts(),
        restored=_restored(),
        gang=_gang(),
        firstFailure=_first_failure(),
        finished=tasks(
            "Tasks that have done their part, by role and attempt; their pods may go and are not made again."
        ),
        incident=_incident(),
        attempts=map_of(
            "How often each task was started anew. A task that is not in it was as often as `others` says, or never "
            "where that is not there.",
            whole("Its attempt."),
        ),
        allCreated={
            "type": "boolean",
            "description": "Whether every task at its attempt has had its pod: one that is missing then was deleted.",
        },
        queue=_queue(),
    )


def _conditions() -> Schema:
    condition = block(
        "One condition.",
        type=text(f"Kind of condition, such as {either(*list(Phase)[1:], 'Complete')}."),
        status={"type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds."},
        reason=text("Why, in one word for programs."),
        message=text("Why, in words for people."),
        lastTransitionTime=time("When status last changed."),
        observedGeneration=whole("The generation of the job that it speaks of."),
    )
    return {
        "type": "array",
        "items": condition | {"required": ["type", "status"]},
        "description": "What holds for the job, in the Kubernetes form.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }


def _queue() -> Schema:
    return block(
        "The job's place in a queue of Kueue; left out where it is in none.",
        name=text("The LocalQueue."),
        workload=text("Its Workload, once there is one."),
        uid=text("The uid of the Workload with whose admission it runs; left out while it waits."),
        clusterQueue=text("The cluster queue whose quota it runs on; left out while it waits."),
        podSets=map_of("What the pods of each role get with that admission.", block("Such as nodeSelector.")),
    )


def _gang() -> Schema:
    return block(
        "The gang that the job began with.",
        provider=text("Whose PodGroup binds the pods: Kubernetes, Volcano or Coscheduling."),
        minAvailable=whole("How many pods are bound at once, or none."),
    )


def _active() -> Schema:
    return block(
        "How long the job has been active, by the operator's clock; suspension does not count.",
        since=time("Since when it is active; not there while it is suspended."),
        seconds=whole("How long it was active before that."),
        allRanAt=time("When all tasks that train first ran since then."),
    )


def _replica_status() -> Schema:
    return block(
        "The tasks of one role.",
        replicas=whole("All of them."),
        active=whole("Those that run."),
        pending=whole("Those that do not run yet."),
        succeeded=whole("Those that ended well."),
        failed=whole("Those that failed, or were lost with their node."),
    )


def _goodput() -> Schema:
    return block(
        "What the job's time went into since all its tasks first ran, without suspension; true as of the last write.",
        percent=whole("Kept time of all time of which it is known what it went into."),
        seconds=map_of(
            "Seconds: kept (steps that stand), unknown, and lost by cause: redone, saving, starting, restarting, "
            "waitingForPods, ending.",
            number("Seconds."),
        ),
        steps=map_of("Steps that the chief told of: kept and redone.", whole("Steps.")),
        counted={"description": "How far it is counted, as the operator keeps it for itself.", PRESERVE: True},
    )


def _restarts() -> Schema:
    return block(
        "Restarts by cause.",
        total=whole("Restarts of training, of any cause."),
        causes=map_of("How many restarts each cause had, such as Disruption, OOMKilled or Error.", whole("Restarts.")),
        evaluator=whole("Restarts of the evaluator, which training does not notice."),
        inPlace=block(
            "How many restarts over crashes in containers that go on were counted, of those that the chief tells of.",
            attempt=whole("The attempt at the chief."),
            count=whole("Restarts."),
        ),
    )


def _workers() -> Schema:
    return block(
        "How many workers an elastic job is to have, and how many train together; left out of other jobs.",
        desired=whole("replicaSpecs.worker.replicas, as last seen."),
        replicas=whole("The workers of the group that is there."),
        selector=text("Which pods they are, as a label selector; an HPA reads it."),
        reason=text("Why they are so many, in one word: AsDesired, NoRoom, Finishing, Scaled, Unschedulable, Room."),
        message=text("Why, in words."),
        since=time("When a group of so many began; left out where the job began with it."),
        resizing=block(
            "The group is saving and ending, for one of another number.",
            to=whole("The workers of the next group."),
            reason=text("Why, in one word."),
            message=text("Why, in words."),
        ),
        unschedulableSince=time("Since when training waits for tasks that there is no room for."),
        adjustedAt=time("When the number was last changed, or was to be, for want of room."),
    )


def _restored() -> Schema:
    return block(
        "What training went on from, when the chief was last seen to start.",
        step=whole("The step that was restored; 0: it began anew."),
        attempt=whole("The attempt at the chief."),
        incarnation=whole("Which of the training processes in the pod of that attempt, counted from 0."),
        time=time("When this was seen."),
    )


def _first_failure() -> Schema:
    return block(
        "The first failure of the last incident.",
        task=text("The task that failed, such as worker-1."),
        pod=text("Its pod."),
        node=text("The pod's node."),
        cause=text("The kind of failure."),
        reason=text("What happened, in words."),
        exitCode=whole("The training container's exit code, where it ended."),
        exception=block(
            "The exception that ended the program, where one did.",
            type=text("Its class, such as ModuleNotFoundError."),
            message=text("The line of it that says what is wrong."),
        ),
        beforeFirstStep={
            "type": "boolean",
            "description": "Whether the pod had done no training step; left out where nobody knows.",
        },
        message=text("The last log lines."),
        rule=text("The rule of failurePolicy.rules that decided about it, and what it matched; absent for none."),
        time=time("When it ended, by its node's clock."),
    )


def _incident() -> Schema:
    return block(
        "The last incident, which is failures that belong together, as the operator keeps it for itself.",
        startedAt=time("When its first failure was seen."),
        cause=text("The kind of its first failure, in a word that earlier operators know."),
        countedAs=text("The kind of its first failure, where that is not cause."),
        notBefore=time("No pod is made before this."),
        charged=whole(
            "Incidents since the last newer checkpoint that count against failurePolicy.maxRestartsWithoutProgress."
        ),
        uncharged=whole(
            "Those that do not, since then or the last long run; see failurePolicy.maxDisruptionsWithoutProgress."
        ),
        inARow=whole("Incidents of any kind since then."),
        checkpointStep=whole("The newest checkpoint when the count last began anew; -1: none."),
        attempts=map_of("The attempt that each task was at when it began.", whole("Its attempt.")),
        action=text("What a rule of failurePolicy.rules said to do about it, where one did."),
        errors=block(
            "The row of errors that it ends, all of which the loss of one peer would explain.",
            began=time("When the first of them began."),
            count=whole("How many they are."),
            attempts=map_of("The attempt that each task was at then.", whole("Its attempt.")),
        ),
        beforeFirstStep=block(
            "What the program failed with, where that was before the job's first step: the same again fails the job.",
            exitCode=whole("The exit code."),
            exception=text("The exception, without numbers and the like."),
        ),
    )


def _progress() -> Schema:
    return block(
        "How far the training is, as the chief reports it.",
        step=whole("Steps trained."),
        totalSteps=whole("Steps to train."),
        epoch=whole("The epoch that is being trained."),
        loss=number("Loss at the last report."),
        metrics=metrics("Metrics at the last report, those of the validation with val_ before their names."),
        stepsPerSecond=number("Speed."),
        etaSeconds=number("Seconds to the end at that speed."),
        eta=text("The same for people: 3m20s."),
        percent=text("Part that is done: 42%."),
        resume=text("Whether a restart comes to the same bits: exact or approximate."),
        model=text("Where the trained model was saved."),
        time=time("When this was written."),
    )


def _evaluation() -> Schema:
    return block(
        "What the evaluator last found.",
        step=whole("The step of the checkpoint it evaluated."),
        metrics=metrics("The metrics that it has there."),
        best=block(
            "The best checkpoint so far, by evaluation.best.",
            step=whole("Its step."),
            value=number("Its metric."),
        ),
    )
