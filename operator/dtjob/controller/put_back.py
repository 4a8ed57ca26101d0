"""Labels that somebody took away from what is ours: by them watches and lists find it."""

from __future__ import annotations

from collections.abc import Mapping

from dtjob.controller.cluster import Cluster, ClusterError
from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import PatchWorkload


async def put_back(cluster: Cluster, there: Manifest, lost: Mapping[str, str]) -> Manifest:
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
        raise ClusterError(f"{kind} {name} has gone while its labels were put back")
    return labelled
