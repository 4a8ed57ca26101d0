"""Convergence: the calls that bring a job's objects to what its status says, earlier attempts away first."""

from __future__ import annotations

from dtjob.objects import labels, shared
from dtjob.objects.pod import pod
from dtjob.plan.actions import Action, Create, Delete, StopServing
from dtjob.plan.children import TaskView, deleting, ended, finished
from dtjob.plan.situation import Situation


def converge(situation: Situation) -> list[Action]:
    """What is to be taken away and made now, of a job that goes on."""
    superseded = (view for view in situation.views if view.pods and view.pods != (view.pod,))
    retired = [action for view in superseded for action in _retire(view)]
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
    there = situation.children.owned_names(situation.job)
    return [Create(make(situation.job)) for name, make in shared.wanted(situation.job).items() if name not in there]


def _missing_pods(situation: Situation) -> list[Action]:
    """The pods of current attempts that are not there, once the wait after an incident is over."""
    incident, chief = situation.status.incident, situation.chief
    if incident is not None and situation.now < incident.not_before:
        return []
    # The task that writes checkpoints is never there twice; any other need not wait for a predecessor that is stuck.
    return [
        Create(pod(situation.job, view.task, view.attempt, situation.defaults, chief.attempt))
        for view in situation.views
        if view.pod is None and (view.task != chief.task or all(ended(old) for old in view.pods))
    ]
