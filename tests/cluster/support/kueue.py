# SPDX-License-Identifier: Apache-2.0
"""Kueue's definitions, as recorded from its release, and its controller as a test plays it by hand.

    python -m tests.cluster.support.kueue DIRECTORY    # records them anew from Kueue's config/components/crd/bases

Recorded are the kinds and the version that dtjob uses, with all that an API server checks and without descriptions.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.support.chart import wait_until
from tools.cluster.rest import Api, ApiError, Object

RECORDED = Path(__file__).resolve().parents[1] / "recorded" / "kueue-v0.19.2.json.gz"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "jobs" / "kueue.md"
GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
PLURALS = ("workloads", "localqueues", "clusterqueues", "resourceflavors", "workloadpriorityclasses")
NOW = "2026-11-21T10:00:00Z"


def definitions() -> list[Object]:
    """The CustomResourceDefinitions."""
    found: list[Object] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return found


def on_the_page() -> dict[str, Object]:
    """The objects of the first block of YAML in docs/jobs/kueue.md, by kind."""
    text = PAGE.read_text().split("```yaml\n", 1)[1].split("```", 1)[0]
    return {one["kind"]: one for one in yaml.safe_load_all(text) if one}


def topology_on_the_page() -> dict[str, Object]:
    """The Topology of docs/jobs/kueue.md and the flavour that names it, by kind."""
    text = PAGE.read_text().split("## Topologies", 1)[1].split("```yaml\n", 1)[1].split("```", 1)[0]
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def plain_group_on_the_page() -> Object:
    """The replicas of docs/jobs/kueue.md whose pods are queued as a plain group."""
    text = PAGE.read_text().split("## Plain pod groups", 1)[1].split("```yaml\n", 1)[1].split("```", 1)[0]
    found: Object = yaml.safe_load(text)["replicaSpecs"]
    return found


def install(api: Api) -> None:
    """Apply the definitions, and wait until the API server serves their objects."""
    for one in definitions():
        api.create("customresourcedefinitions", None, one)
    for plural in PLURALS:
        api.wait_established(f"{plural}.{GROUP}")
        wait_until(lambda plural=plural: _is_served(api, plural), f"{plural} are served")


def _is_served(api: Api, plural: str) -> bool:
    """Whether its objects can be listed: for a moment an established definition says that its storage is not ready."""
    try:
        api.list(plural)
    except ApiError:
        return False
    return True


def uninstall(api: Api) -> None:
    """Remove them, with all their objects."""
    for plural in PLURALS:
        api.delete("customresourcedefinitions", None, f"{plural}.{GROUP}")


def flavour(name: str, labels: dict[str, str], *tolerations: Object) -> Object:
    """A ResourceFlavor."""
    spec = {"nodeLabels": labels, "tolerations": list(tolerations)}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def priority_class(name: str, value: int) -> Object:
    """A WorkloadPriorityClass."""
    metadata = {"name": name}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "WorkloadPriorityClass", "metadata": metadata, "value": value}


class Controller:
    """Kueue's controller, for the Workload of one namespace, or of one job: it does what the test says."""

    def __init__(self, api: Api, namespace: str, job: str = "") -> None:
        self._api, self._namespace, self._job = api, namespace, job

    def workload(self, holds: Any = lambda found: True) -> Object:
        """The one Workload, once there is one for which this holds."""

        def one(found: dict[str, Object]) -> bool:
            return len(ours := self._ours(found)) == 1 and holds(ours[0])

        return self._ours(self._api.wait("workloads", self._namespace, one))[0]

    def _ours(self, found: dict[str, Object]) -> list[Object]:
        def owned(workload: Object) -> bool:
            return any(one["name"] == self._job for one in workload["metadata"].get("ownerReferences", ()))

        return [one for one in found.values() if not self._job or owned(one)]

    def admit(self, flavours: dict[str, str] | None = None, **status: Any) -> Object:
        """Reserve quota and admit. `flavours`: resource to flavour, for all sets of pods."""
        sets = self.workload()["spec"]["podSets"]
        assigned = [{"name": one["name"], "flavors": flavours or {}, "count": one["count"]} for one in sets]
        admission = {"clusterQueue": "research", "podSetAssignments": assigned}
        return self._write({"QuotaReserved": True, "Admitted": True, "Evicted": False}, admission=admission, **status)

    def reserve(self, **status: Any) -> Object:
        """Reserve quota, and no more."""
        sets = self.workload()["spec"]["podSets"]
        assigned = [{"name": one["name"], "count": one["count"]} for one in sets]
        admission = {"clusterQueue": "research", "podSetAssignments": assigned}
        return self._write({"QuotaReserved": True}, admission=admission, **status)

    def evict(self, reason: str = "Preempted", message: str = "Preempted to accommodate a workload") -> Object:
        """Take the quota away: the job is to give it back."""
        return self._write({"Evicted": True}, reason, message)

    def say(self, type_: str, value: bool, reason: str, message: str) -> Object:
        """Set one condition."""
        return self._write({type_: value}, reason, message)

    def _write(self, changed: dict[str, bool], reason: str = "ByTest", message: str = "", **status: Any) -> Object:
        """Merge conditions and fields into the status. As Kueue, it tries again where it was too late."""
        found = self.workload()
        conditions = {one["type"]: one for one in found.get("status", {}).get("conditions", [])}
        for type_, value in changed.items():
            said = {"type": type_, "status": str(value), "reason": reason, "message": message}
            conditions[type_] = {**said, "lastTransitionTime": NOW}
        body = {"status": {"conditions": list(conditions.values()), **status}}
        body["metadata"] = {"resourceVersion": found["metadata"]["resourceVersion"]}
        try:
            return self._api.patch("workloads", self._namespace, found["metadata"]["name"], body, "status")
        except ApiError as error:
            if error.status != 409:
                raise
        return self._write(changed, reason, message, **status)


def _without_descriptions(value: Any, is_schema: bool = True) -> Any:
    if isinstance(value, list):
        return [_without_descriptions(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _without_descriptions(one, name != "properties")
        for name, one in value.items()
        if not (is_schema and name == "description" and isinstance(one, str))
    }


def record(directory: Path) -> None:
    """Write RECORDED from the definitions in this directory."""
    kept = []
    for plural in PLURALS:
        found = yaml.safe_load((directory / f"{GROUP}_{plural}.yaml").read_text())
        found["spec"]["versions"] = [one for one in found["spec"]["versions"] if one["name"] == VERSION]
        found["spec"].pop("conversion", None)
        found["metadata"] = {"name": f"{plural}.{GROUP}", "annotations": found["metadata"]["annotations"]}
        kept.append(_without_descriptions(found))
    text = json.dumps(kept, separators=(",", ":"), sort_keys=True).encode()
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_bytes(gzip.compress(text, 9, mtime=0))


if __name__ == "__main__":
    record(Path(sys.argv[1]))
