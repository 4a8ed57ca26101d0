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
    found = [
        Relabel(pod["metadata"]["name"], pod["metadata"]["uid"], lost)
        for view in situation.views
        for pod in view.pods
        if (lost := _lost(situation, view, pod))
    ]
    if not found:
        return [], []
    names = ", ".join(one.name for one in found[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    changed = ", ".join(sorted(found[0].labels))
    told = f"Somebody changed labels by which dtjob finds its pods ({changed}); they are put back on {names}{more}"
    return found, [Event("Warning", "LabelsRestored", told)]


def _lost(situation: Situation, view: TaskView, pod: Manifest) -> dict[str, str]:
    metadata, attempt = situation.job.metadata, topology.attempt_of(pod)
    wanted = {
        labels.JOB_NAME: metadata.name,
        labels.JOB_UID: metadata.uid,
        labels.ROLE: view.task.role.value,
        labels.INDEX: str(view.task.index),
        labels.ATTEMPT: str(attempt),
    }
    if attempt == view.attempt:
        wanted[labels.SERVING] = metadata.uid
    found = labels.of(pod)
    if wanted.items() <= found.items():
        return {}
    return {name: value for name, value in wanted.items() if found.get(name) != value}
