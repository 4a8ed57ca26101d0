"""Rules about mounts: each names a volume that the pod has."""

from __future__ import annotations

from dtjob.api.spec.pod_template import CHECKPOINT_VOLUME, CLUSTER_VOLUME, SHARED_MEMORY_VOLUME
from dtjob.crd.rule import Rule, Value

OURS = (CHECKPOINT_VOLUME, CLUSTER_VOLUME, SHARED_MEMORY_VOLUME)
"""dtjob's own volumes, which not every pod has: `pod_problems.py` looks more closely."""
NO_VOLUME = "a volumeMount names a volume that is not there: add the volume, or correct the name in the volumeMount"


def _holds(spec: Value) -> bool:
    there = {*OURS, *(volume["name"] for volume in spec.get("volumes") or [])}
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    return all(mount["name"] in there for one in containers for mount in one.get("volumeMounts") or [])


def _mounted(containers: str) -> str:
    """CEL: all that these containers mount is there."""
    there = f"m.name in {list(OURS)} || has(self.volumes) && self.volumes.exists(v, v.name == m.name)"
    mounts = f"!has(c.volumeMounts) || c.volumeMounts.all(m, {there})"
    return f"(!has(self.{containers}) || self.{containers}.all(c, {mounts}))"


MOUNT_RULES = (
    Rule(
        "spec.replicaSpecs.*.template.spec",
        f"{_mounted('containers')} && {_mounted('initContainers')}",
        _holds,
        NO_VOLUME,
        "volumes",
    ),
)
