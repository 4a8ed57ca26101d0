"""Whether a queue knows topologies: then Kueue is asked to place the pods that train near each other.

Only a ResourceFlavor that names a Topology can be asked, and a Workload that asks any other is never admitted. Where
the job's cluster queue has none such, or cannot be seen, the pods' own affinity brings them near.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtjob.plan.seen.situation import Situation


def places_pods(situation: Situation, queue: str) -> bool:
    """Whether the job says `scheduling.topology` and a flavour of this queue names a Topology. Raises Unread."""
    if situation.group_job.spec.scheduling.topology is None:
        return False
    cluster_queue = _spec(situation, "LocalQueue", queue).get("clusterQueue")
    groups = _spec(situation, "ClusterQueue", cluster_queue).get("resourceGroups") if cluster_queue else ()
    names = (flavour["name"] for group in groups or () for flavour in group.get("flavors") or ())
    return any(_spec(situation, "ResourceFlavor", name).get("topologyName") for name in dict.fromkeys(names))


def _spec(situation: Situation, kind: str, name: str) -> Mapping[str, Any]:
    (found,) = situation.children.found((kind, name))
    return (found or {}).get("spec") or {}
