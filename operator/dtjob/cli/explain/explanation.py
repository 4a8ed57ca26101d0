# SPDX-License-Identifier: Apache-2.0
"""`dtjob explain`: what a job would be in a cluster, without one."""

import json
from collections.abc import Iterator
from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.checkpoint import BestMode, Checkpoint
from dtjob.api.spec.volume_claim import Retention
from dtjob.cli.explain.gang import gang_lines, gang_objects
from dtjob.cli.explain.life import life
from dtjob.cli.explain.rules import as_lines as failure_lines
from dtjob.cli.explain.rules import rules_that_hold
from dtjob.manifests.manifest_yaml import written
from dtjob.objects import shared, topology
from dtjob.objects.defaults import NO_DEFAULTS, Defaults, image_of_role
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.keeping import keeping
from dtjob.objects.pod.mounting import mounting_problem
from dtjob.objects.pod.pod import pod
from dtjob.objects.topology import Task


def objects(job: Job, defaults: Defaults = NO_DEFAULTS) -> list[Manifest]:
    """Everything that the operator with these defaults creates for the job, in that order.

    The job's uid is empty, as an API server gives that.
    """
    pods = [pod(job, task, 0, defaults) for task in topology.tasks(job)]
    return [*shared.shared_objects(job, defaults.readers), *gang_objects(job, pods, defaults)]


def explanation(job: Job, defaults: Defaults = NO_DEFAULTS) -> dict[str, Any]:
    """The job's tasks with their hosts and TF_CONFIG, the rules about their failures, and the objects.

    All tasks share one cluster spec: it has an address for each of them.
    """
    cluster = topology.cluster_spec(job)
    return {
        "job": job.metadata.name,
        "strategy": job.spec.strategy.value,
        "chiefTask": topology.chief_task(job).id,
        "clusterHash": topology.cluster_hash(job),
        "tasks": [_task(job, task, cluster, defaults) for task in topology.tasks(job)],
        "failureRules": [rule.to_json() for rule in rules_that_hold(job)],
        "objects": objects(job, defaults),
    }


def as_json(job: Job, defaults: Defaults = NO_DEFAULTS) -> Iterator[str]:
    """The explanation as one JSON object, in pieces."""
    yield from json.JSONEncoder(indent=2).iterencode(explanation(job, defaults))
    yield "\n"


def as_yaml(job: Job, defaults: Defaults = NO_DEFAULTS) -> Iterator[str]:
    """The objects as YAML documents, as `kubectl get -o yaml` would show them at first, in one piece."""
    yield written(objects(job, defaults))


def as_text(job: Job, defaults: Defaults = NO_DEFAULTS) -> Iterator[str]:
    """The explanation for people, line by line."""
    return (f"{line}\n" for line in _lines(job, defaults))


def _lines(job: Job, defaults: Defaults) -> Iterator[str]:
    found = explanation(job, defaults)
    yield f"{found['job']}: {found['strategy']}, {_count(found['tasks'])}; {found['chiefTask']} decides success"
    yield from ("", f"Image: {_images(found['tasks'])}")
    yield from ("", "Objects, in the order of creation:")
    width = max(14, *(len(item["kind"]) for item in found["objects"]))
    yield from (f"  {item['kind']:<{width}} {item['metadata']['name']}" for item in found["objects"])
    yield from ("", "Tasks:")
    for task in found["tasks"]:
        yield f"  {task['task']}"
        yield f"    pod        {task['pod']}"
        yield f"    address    {task['address']}"
        yield f"    TF_CONFIG  {json.dumps(task['tfConfig']) if task['tfConfig'] else 'none: it stands alone'}"
    yield from ("", "Checkpoints:", *_checkpoints(job, defaults))
    yield from ("", "Placement:", *gang_lines(job, defaults))
    yield from ("", "Life:", *life(job, defaults))
    yield from ("", "Failures, of which the first rule that matches decides:", *failure_lines(job))
    yield from ("", f"The objects in full: dtjob explain -o yaml. Under `dtjob run`: {LOCAL}")


NO_IMAGE = "left out; the operator's default (--default-image shows the job with one), else the job waits for one"
LOCAL = "processes for pods, 127.0.0.1 for hosts, .dtjob/<job>/run-<n>/checkpoints for a directory that is no URI"


def _count(tasks: list[dict[str, Any]]) -> str:
    return "1 task" if len(tasks) == 1 else f"{len(tasks)} tasks"


def _images(tasks: list[dict[str, Any]]) -> str:
    """The image of all tasks, or each with the tasks that run it."""
    tasks_of: dict[str, list[str]] = {}
    for task in tasks:
        tasks_of.setdefault(task["image"] or NO_IMAGE, []).append(task["task"])
    if len(tasks_of) == 1:
        return next(iter(tasks_of))
    return ", ".join(f"{image} ({', '.join(some)})" for image, some in tasks_of.items())


def _task(job: Job, task: Task, cluster: dict[str, list[str]], defaults: Defaults) -> dict[str, Any]:
    # With our supervisor, a task outside its strategy's cluster gets no TF_CONFIG (trainer: contract/task.py).
    alone = job.spec.program is not None and not topology.connected(job, task)
    return {
        "task": task.id,
        "pod": topology.pod_name(job, task, 0),
        "address": topology.address(job, task, job.spec.network.port),
        "image": image_of_role(job, task.role, defaults),
        "tfConfig": None if alone else topology.tf_config(cluster, task),
    }


def _saved(checkpoint: Checkpoint) -> Iterator[str]:
    """When training is saved, by each field that says so."""
    match checkpoint.every_epochs:
        case None:
            yield "at the end of an epoch, 30 s or more after the last save"
        case 1:
            yield "at the end of each epoch"
        case epochs if epochs:
            yield f"every {epochs} epochs"
    if checkpoint.every_steps:
        yield f"every {checkpoint.every_steps} steps"
    if checkpoint.every_seconds:
        yield f"{checkpoint.every_seconds} s after the last save"


def _saves(job: Job, checkpoint: Checkpoint) -> list[str]:
    """What is saved when, and what is kept of it."""
    if job.spec.program is None:
        return ["  saved      by the program itself"]
    lines = [f"  saved      {when}" for when in list(_saved(checkpoint)) or ["at the end of training only"]]
    lines.append(f"  kept       the newest {checkpoint.max_to_keep}")
    if checkpoint.keep_every_steps:
        lines.append(f"  kept       the first at or after each multiple of {checkpoint.keep_every_steps} steps")
    best = job.spec.evaluation.best if job.spec.evaluation else None
    which = f"with the {'highest' if best.mode is BestMode.MAX else 'lowest'} {best.metric}" if best else ""
    if checkpoint.keep_best:
        lines.append(f"  kept       the {checkpoint.keep_best} {which} of those that are evaluated")
    if best and best.keep_model:
        lines.append(f"  kept       the model {which}, as best.keras")
    if board := job.spec.tensor_board:
        lines.append(
            f"  events     {checkpoint.directory}/events/train, for TensorBoard, every {board.every_steps} steps"
        )
    if board and board.profile:
        last = board.profile.first_step + board.profile.steps - 1
        lines.append(f"  profile    steps {board.profile.first_step} to {last} of {topology.chief_task(job).id}")
    return lines


def _checkpoints(job: Job, defaults: Defaults) -> list[str]:
    checkpoint = job.spec.checkpoint
    if checkpoint is None:
        return ["  none: a restart begins again at step 0"]
    storage = checkpoint.storage
    lines = [f"  directory  {checkpoint.directory}"]
    if storage.volume:
        lines.append(f"  volume     {json.dumps(storage.volume)}, mounted on {storage.mount_on.value}")
    if template := storage.volume_claim_template:
        size, modes = template.spec.resources.requests["storage"], ", ".join(template.spec.access_modes)
        lines.append(f"  claim      {shared.claim_name(job)}, {size}, {modes}, mounted on {storage.mount_on.value}")
        then = "stays" if storage.retention is Retention.RETAIN else "is deleted"
        lines.append(f"  claim      {then} when the job is deleted")
    lines += _saves(job, checkpoint)
    kept = keeping(job, defaults)
    warnings = (kept.message if kept else "", mounting_problem(job))
    lines += [f"  warning    {warning}" for warning in warnings if warning]
    return lines
