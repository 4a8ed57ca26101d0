"""What stands in the way of a create: whose it is, and what it lacks."""

from __future__ import annotations

from dtjob.api.job import GROUP
from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest


def is_of_an_earlier_job(wanted: Manifest, existing: Manifest) -> bool:
    """Whether it belongs to a job of the same name that was deleted, and which Kubernetes is about to collect."""
    same_name = labels.of(existing).get(labels.JOB_NAME) == labels.of(wanted).get(labels.JOB_NAME)
    owner = labels.controller_uid(existing)
    ours_once = labels.of(existing).get(labels.JOB_UID) == owner
    return same_name and ours_once and owner not in (None, labels.controller_uid(wanted))


def is_ours(wanted: Manifest, existing: Manifest) -> bool:
    """Whether an object that was there already is the one that this create would have made: the same owner's, as a
    pod's name says which attempt it is."""
    return labels.controller_uid(existing) == labels.controller_uid(wanted)


def lost_labels(wanted: Manifest, existing: Manifest) -> dict[str, str]:
    """The labels by which we find a pod or Workload, where one that was there already has lost them. Of other kinds
    none: the shared ones are mended, or asked for by name."""
    if wanted["kind"] not in ("Pod", kueue.KIND):
        return {}
    found = labels.of(existing)
    return {
        name: value
        for name, value in labels.of(wanted).items()
        if name.startswith(f"{GROUP}/") and found.get(name) != value
    }
