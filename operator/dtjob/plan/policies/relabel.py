"""Labels that somebody took from our pods are put back: Service, NetworkPolicy, watch and `kubectl -l` go by them."""

from __future__ import annotations

from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event, Relabel
from dtjob.plan.children import TaskView
from dtjob.plan.situation import Situation

NAMED = 3
"""How many pods an event names before it counts the rest."""


def lost_labels(situation: Situation) -> tuple[list[Relabel], list[Event]]:
    """The labels to put back, and what users are told."""
    name, uid = situation.job.metadata.name, situation.job.metadata.uid
    found = [
        Relabel(pod["metadata"]["name"], pod["metadata"]["uid"], _lost(name, uid, view, pod))
        for view in situation.views
        for pod in view.pods
        if not _is_labelled(name, uid, view, pod)
    ]
    if not found:
        return [], []
    names = ", ".join(one.name for one in found[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    changed = ", ".join(sorted(found[0].labels))
    told = f"Somebody changed labels by which dtjob finds its pods ({changed}); they are put back on {names}{more}"
    return found, [Event("Warning", "LabelsRestored", told)]


def _is_labelled(name: str, uid: str, view: TaskView, pod: Manifest) -> bool:
    """Whether the pod has all labels that `_lost` asks for; thousands are looked at in each plan."""
    found = labels.of(pod)
    by_labels = f"{name}-{found.get(labels.ROLE)}-{found.get(labels.INDEX)}-{found.get(labels.ATTEMPT)}"
    named = by_labels == pod["metadata"]["name"] and found.get(labels.JOB_NAME) == name
    serves = pod is not view.pod or found.get(labels.SERVING) == uid
    return named and serves and found.get(labels.JOB_UID) == uid


def _lost(name: str, uid: str, view: TaskView, pod: Manifest) -> dict[str, str]:
    wanted = {
        labels.JOB_NAME: name,
        labels.JOB_UID: uid,
        labels.ROLE: view.task.role.value,
        labels.INDEX: str(view.task.index),
        labels.ATTEMPT: str(topology.attempt_of(pod)),
    }
    if pod is view.pod:
        wanted[labels.SERVING] = uid
    found = labels.of(pod)
    return {label: value for label, value in wanted.items() if found.get(label) != value}
