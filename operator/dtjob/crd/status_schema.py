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


def _either(*words: str) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def status_schema() -> Schema:
    """The schema of a job's status."""
    condition = _block(
        "One condition.",
        type=_text(f"Kind of condition, such as {_either(*list(Phase)[1:])}."),
        status={"type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds."},
        reason=_text("Why, in one word for programs."),
        message=_text("Why, in words for people."),
        lastTransitionTime=_time("When status last changed."),
        observedGeneration=_whole("The generation of the job that it speaks of."),
    )
    conditions = {
        "type": "array",
        "items": condition | {"required": ["type", "status"]},
        "description": "What holds for the job, in the Kubernetes form.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    return _block(
        "What became of the job; written by the operator.",
        observedGeneration=_whole("The generation of the job that this status speaks of."),
        phase=_text(f"Where the job stands: {_either(*Phase)}."),
        reason=_text("Why it stands there, in one word."),
        message=_text("Why it stands there, in words."),
        conditions=conditions,
        image=_text("The operator's default image when the job began, where spec.image is left out: all pods have it."),
        ready=_text("Tasks that are up, of all tasks: 3/4."),
        startTime=_time("When the operator first saw the job."),
        completionTime=_time("When the job succeeded or failed."),
        replicaStatuses=_block("Tasks by role and state: replicas, active, pending, succeeded, failed."),
        progress=_block(
            "How far the training is, as the chief reports it.",
            step=_whole("Steps trained."),
            totalSteps=_whole("Steps to train."),
            loss=_number("Loss at the last report."),
            stepsPerSecond=_number("Speed."),
            etaSeconds=_number("Seconds to the end at that speed."),
            eta=_text("The same for people: 3m20s."),
            percent=_text("Part that is done: 42%."),
            time=_time("When this was written."),
        ),
        checkpoint=_block(
            "The newest whole checkpoint, from which a restart resumes.",
            step=_whole("Its step."),
            time=_time("When it was written."),
        ),
        evaluation=_block("What the evaluator last found.", step=_whole("The step of the checkpoint it evaluated.")),
        restarts=_block(
            "Restarts by cause.",
            total=_whole("All restarts."),
            causes=_block("How many restarts each cause had, such as Disruption, OOMKilled or Error."),
        ),
        firstFailure=_block("The first failure of the last incident: pod, node, exit code, reason, last log lines."),
        attempts=_block(
            "How often each task was started anew. A task that is not in it was as often as `others` says, or never "
            "where that is not there."
        ),
    )
