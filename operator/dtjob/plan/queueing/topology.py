"""Whether a queue knows topologies: then Kueue is asked to place the pods that train near each other.

Only a ResourceFlavor that names a Topology can be asked, and a Workload that asks any other is never admitted. Where
the job's cluster queue has none such, or cannot be seen, the pods' own affinity brings them near.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Read
from dtjob.plan.seen.situation import Situation


def places_pods(situation: Situation, queue: str) -> tuple[Read, bool]:
    """What to read, and whether a flavour of this queue names a Topology. Asked only of a job that says
    `scheduling.topology`."""
    if situation.group_job.spec.scheduling.topology is None:
        return (), False
    read = situation.children.read
    for kind, name in _chain(read, queue):
        if (kind, name) not in read:
            return ((kind, name),), False
        found = read[kind, name]
        if kind == "ResourceFlavor" and found is not None and (found.get("spec") or {}).get("topologyName"):
            return (), True
    return (), False


def _chain(read: Mapping[tuple[str, str], Manifest | None], queue: str) -> Iterator[tuple[str, str]]:
    """The queue, its cluster queue, and that one's flavours, as far as they are known."""
    yield "LocalQueue", queue
    spec = ((read.get(("LocalQueue", queue)) or {}).get("spec")) or {}
    if cluster_queue := spec.get("clusterQueue"):
        yield "ClusterQueue", cluster_queue
        groups = ((read.get(("ClusterQueue", cluster_queue)) or {}).get("spec") or {}).get("resourceGroups") or ()
        names = (flavour["name"] for group in groups for flavour in group.get("flavors") or ())
        yield from (("ResourceFlavor", name) for name in dict.fromkeys(names))
