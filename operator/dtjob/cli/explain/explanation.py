# SPDX-License-Identifier: Apache-2.0
"""`dtjob explain`: what a job would be in a cluster, without one."""

import json
from collections.abc import Iterator
from typing import Any

from dtjob.api.job import Job
from dtjob.api.words import counted
from dtjob.cli.explain.lines import checkpoints, life, placement
from dtjob.cli.explain.rules import as_lines as failure_lines
from dtjob.cli.explain.rules import rules_that_hold
from dtjob.manifests.manifest_yaml import written
from dtjob.objects import gangs, shared, topology
from dtjob.objects.defaults import NO_DEFAULTS, Defaults, image_of_role
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.pod import pod
from dtjob.objects.topology import Task


def objects(job: Job, defaults: Defaults = NO_DEFAULTS) -> list[Manifest]:
    """Everything that the operator with these defaults creates for the job, in that order.

    The job's uid is empty, as an API server gives that.
    """
    pods = {task: pod(job, task, 0, defaults) for task in topology.all_tasks(job)}
    found = shared.shared_objects(job, defaults.readers)
    if (group := gangs.pod_group(job, defaults)) is None:
        return [*found, *pods.values()]
    members = (gangs.joined(one, job, defaults) if task.role.trains else one for task, one in pods.items())
    return [*found, gangs.on_the_wire(group), *members]


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
        "tasks": [_task(job, task, cluster, defaults) for task in topology.all_tasks(job)],
        "failureRules": [rule._asdict() for rule in rules_that_hold(job)],
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
    tasks = counted(len(found["tasks"]), "task")
    yield f"{found['job']}: {found['strategy']}, {tasks}; {found['chiefTask']} decides success"
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
    yield from ("", "Checkpoints:", *checkpoints(job, defaults))
    yield from ("", "Placement:", *placement(job, defaults))
    yield from ("", "Life:", *life(job, defaults))
    yield from ("", "Failures, of which the first rule that matches decides:", *failure_lines(job))
    yield from ("", f"The objects in full: dtjob explain -o yaml. Under `dtjob run`: {LOCAL}")


NO_IMAGE = "left out; the operator's default (--default-image shows the job with one), else the job waits for one"
LOCAL = "processes for pods, 127.0.0.1 for hosts, .dtjob/<job>/run-<n>/checkpoints for a directory that is no URI"


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
