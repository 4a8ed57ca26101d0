# SPDX-License-Identifier: Apache-2.0
"""Objects that already have the name of one to be created: whose they are, and which labels they have lost."""

from __future__ import annotations

from collections.abc import Mapping

from dtjob.api.job import GROUP
from dtjob.controller.cluster import Cluster, ClusterError
from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import PatchWorkload


async def restore_labels(cluster: Cluster, there: Manifest, lost: Mapping[str, str]) -> Manifest:
    """Give a pod or Workload that is `there` the labels that it has `lost`; the object as stored then, in a version
    later than that in which the watch saw it go. Raises ClusterError where it has gone meanwhile, or the cluster did
    not answer."""
    metadata, kind = there["metadata"], there["kind"]
    namespace, name, uid = metadata["namespace"], metadata["name"], metadata["uid"]
    if kind == kueue.KIND:
        body = {"metadata": {"labels": dict(lost)}}
        patch = PatchWorkload(name, uid, metadata["resourceVersion"], body, False, "its labels were taken away")
        return await cluster.patch_workload(namespace, patch)
    labelled = await cluster.relabel(namespace, name, uid, lost)
    if labelled is None:
        raise ClusterError(f"{kind} {name} has gone while its labels were restored")
    return labelled


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
    none: the shared ones are repaired, or asked for by name."""
    if wanted["kind"] not in ("Pod", kueue.KIND):
        return {}
    found = labels.of(existing)
    return {
        name: value
        for name, value in labels.of(wanted).items()
        if name.startswith(f"{GROUP}/") and found.get(name) != value
    }
