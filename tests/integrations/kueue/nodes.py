# SPDX-License-Identifier: Apache-2.0
"""kwok's nodes under the real scheduler: pods are bound where there is room, run at once, and go when they are deleted.

Four nodes of two cores in two racks, with the labels that the Topology of docs/jobs/kueue.md goes by.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.cluster.support.kubelet import Kubelet
from tools.cluster.control_plane import ControlPlane
from tools.cluster.program import Program
from tools.cluster.rest import Api, Object

RACK, HOST, POOL = "example.com/rack", "kubernetes.io/hostname", "example.com/pool"
RACKS = {"node-1": "a", "node-2": "a", "node-3": "b", "node-4": "b"}
CORES = 2
SAVES = "dtjob.test/saves"
"""An annotation of a pod: it is told to end, and has not ended yet."""


@contextmanager
def nodes(cluster: ControlPlane, kwok: Path) -> Iterator[None]:
    """Have these nodes in the cluster."""
    stages = [kwok.with_name(f"{name}.yaml") for name in ("node-initialize", "pod-ready")]
    ends = cluster.directory / "pod-delete.yaml"
    stage = yaml.safe_load(kwok.with_name("pod-delete.yaml").read_text())
    stage["spec"]["selector"]["matchExpressions"].append(
        {"key": f'.metadata.annotations["{SAVES}"]', "operator": "DoesNotExist"}
    )
    ends.write_text(yaml.safe_dump(stage))
    command = [
        *(str(kwok), f"--kubeconfig={cluster.kubeconfig}", "--manage-all-nodes=true", "--cidr=10.128.0.1/9"),
        *(f"--config={one}" for one in (*stages, ends)),
    ]
    api = Api(cluster.kubeconfig)
    running = Program("kwok", command, cluster.directory)
    try:
        for name in RACKS:
            api.create("nodes", None, _node(name))
            # An admission plugin says that it is not ready, and the controller that takes that back is not here.
            api.patch("nodes", None, name, {"spec": {"taints": None}})
        running.wait_until(lambda: all(_is_ready(one) for one in api.list("nodes")))
        yield
    finally:
        running.stop()


class Pods:
    """The pods of one namespace on these nodes, as a test looks at them and lets them end."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._statuses = Kubelet(api, namespace)  # never entered: it is asked for statuses only
        self._saving: list[str] = []

    def run(self, pod: str) -> Object:
        """Wait until the pod is bound and runs."""
        found = self._api.wait_for(
            "pods", self._namespace, pod, lambda one: one and one.get("status", {}).get("phase") == "Running"
        )
        assert found is not None
        return found

    def succeed(self, pod: str) -> Object:
        """All containers end with 0."""
        self.run(pod)
        return self._statuses.succeed(pod)

    def hang(self, pod: str) -> None:
        """The pod saves: it does not end when it is told to, until `release`."""
        self._annotate(pod, "true")
        self._saving.append(pod)

    def release(self) -> None:
        """It has saved."""
        while self._saving:
            self._annotate(self._saving.pop(), None)

    def _annotate(self, pod: str, value: str | None) -> None:
        self._api.patch("pods", self._namespace, pod, {"metadata": {"annotations": {SAVES: value}}})


def bound(api: Api, namespace: str, claim: Object) -> None:
    """Make this claim, bound to a volume: the scheduler binds no pod whose claim is not."""
    name, spec = claim["metadata"]["name"], {**claim["spec"], "storageClassName": ""}
    volume = f"{namespace}-{name}"
    space = {"capacity": spec["resources"]["requests"], "hostPath": {"path": "/checkpoints"}, "storageClassName": ""}
    ref = {"namespace": namespace, "name": name}
    has = {**space, "accessModes": spec["accessModes"], "claimRef": ref}
    api.create("persistentvolumes", None, _object("PersistentVolume", volume, has))
    api.create("persistentvolumeclaims", namespace, {**claim, "spec": {**spec, "volumeName": volume}})


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _node(name: str) -> Object:
    metadata = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    metadata["labels"] = {HOST: name, RACK: RACKS[name], POOL: "training"}
    room = {"cpu": str(CORES), "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"capacity": room, "allocatable": room},
    }


def _is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)
