"""Convergence: the calls that bring a job's objects to what its status says, earlier attempts away first."""

from __future__ import annotations

from functools import partial

from dtjob.objects import labels, shared, topology
from dtjob.objects.pod import pod
from dtjob.plan.actions import Action, Create, Delete, StopServing
from dtjob.plan.children import TaskView, deleting, ended, finished
from dtjob.plan.situation import Situation


def converge(situation: Situation) -> list[Action]:
    """What is to be taken away and made now, of a job that goes on."""
    retired = [action for view in situation.views for action in _retire(view)]
    return [*retired, *_missing_shared(situation), *_missing_pods(situation)]


def _retire(view: TaskView) -> list[Action]:
    """Take earlier attempts out of service and away."""
    actions: list[Action] = []
    for old in view.pods:
        if labels.attempt(old) >= view.attempt:
            continue
        name, uid = old["metadata"]["name"], old["metadata"]["uid"]
        if labels.SERVING in labels.of(old) and not finished(old):
            actions.append(StopServing(name, uid))
        if not deleting(old):
            actions.append(Delete("Pod", name, uid, f"{view.task.id} is at attempt {view.attempt}"))
    return actions


def _missing_shared(situation: Situation) -> list[Action]:
    """The Service, ConfigMap and NetworkPolicy that are not there."""
    actions: list[Action] = []
    for manifest in shared.shared_objects(situation.job):
        name = manifest["metadata"]["name"]
        there = situation.children.owned(situation.job, manifest["kind"])
        if not any(child["metadata"]["name"] == name for child in there):
            actions.append(Create.of(manifest))
    return actions


def _missing_pods(situation: Situation) -> list[Action]:
    """The pods of current attempts that are not there, once the wait after an incident is over."""
    incident, chief = situation.status.incident, situation.chief
    if incident is not None and situation.now < incident.not_before:
        return []
    # The task that writes checkpoints is never there twice; any other need not wait for a predecessor that is stuck.
    missing = [
        view
        for view in situation.views
        if view.pod is None and (view.task != chief.task or all(ended(old) for old in view.pods))
    ]
    return [_create(situation, view, chief.attempt) for view in missing]


def _create(situation: Situation, view: TaskView, chief_attempt: int) -> Create:
    """The task's pod, to be made when its turn comes."""
    job, task, attempt = situation.job, view.task, view.attempt
    make = partial(pod, job, task, attempt, situation.defaults, chief_attempt)
    return Create("Pod", topology.pod_name(job, task, attempt), make, task.role.value)
