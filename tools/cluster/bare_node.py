# SPDX-License-Identifier: Apache-2.0
"""The bare node as the cluster of the end-to-end tests: images by containerd, volumes in directories of the host."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from tools import binaries
from tools.cluster.cluster import UnsupportedError, container_id
from tools.cluster.rest import Object
from tools.cluster.volumes import volume_and_claim
from tools.images import Image
from tools.node import image_store, packages, policies
from tools.node.node import Node
from tools.programs import POLICIES


class BareNode(Node):
    """A `Cluster` (cluster.py) that runs on this machine without a container engine."""

    name = "the bare node"
    nodes: tuple[str, ...] = ()

    def __init__(self, programs: dict[str, Path]) -> None:
        super().__init__(programs)
        self._loaded: dict[str, str] = {}

    def start(self) -> None:
        """Return when the nodes are Ready. Raises UnavailableError where there can be none, ProgramError with a log."""
        super().start()
        self._loaded.update(image_store.contents())
        self._machines = {machine.name: machine for machine in self.machines}
        self.nodes = tuple(self._machines)

    def load(self, image: Image) -> str:
        """Bring a built image to every node, once; returns the reference by which manifests ask for it."""
        identity = image_store.identity(image) or str(image.archive)
        if self._loaded.get(image.reference) != identity:  # built since the node's start
            self.import_image(image.archive)
            self._loaded[image.reference] = identity
        return image.reference

    def claim(self, namespace: str, name: str, *, shared: bool = False) -> None:
        """Make a claim bound to a volume of its own, a directory of the host's that goes with the node."""
        directory = self.volumes / namespace / name
        directory.mkdir(parents=True)
        directory.chmod(0o777)  # the kubelet gives no hostPath volume to the pod's group
        for manifest in volume_and_claim(namespace, name, directory, shared):
            self.kubectl("create", "-f", "-", stdin=json.dumps(manifest))

    def kill_container(self, pod: Object, container: str) -> None:
        """SIGKILL the first process of a pod's container, as the kernel's out-of-memory killer would."""
        self._machines[pod["spec"]["nodeName"]].containerd.kill(container_id(pod, container))

    def kill_program(self, pod: Object, container: str) -> None:
        """SIGKILL the process of a pod's container that has the most memory: the one that trains."""
        self._machines[pod["spec"]["nodeName"]].containerd.kill_largest(container_id(pod, container))

    def stop_kubelet(self, node: str) -> None:
        """Stop a node's kubelet: to the cluster the node is gone, its containers run on."""
        self._machines[node].kubelet.stop()

    def start_kubelet(self, node: str) -> None:
        """Start it again."""
        self._machines[node].kubelet.start()

    @contextlib.contextmanager
    def network_policies(self) -> Iterator[str]:
        """Enforce NetworkPolicies for the pods of one node, whose name this gives. kube-router is built the first time,
        and missing packages are installed. Raises UnsupportedError where that is not possible."""
        try:
            packages.ensure(programs=policies.PACKAGES, who="a policy engine")
            binary = binaries.find([POLICIES])[POLICIES]
        except (packages.UnavailableError, binaries.BinariesError) as error:
            raise UnsupportedError(f"no policy engine: {str(error).splitlines()[0]}") from None
        with policies.enforced(self.machines[0], binary, self.kubeconfig):
            yield self.machines[0].name

    def write_logs(self, directory: Path) -> None:
        """Copy the logs of control plane and nodes."""
        for top in (self.control_plane.directory, self.directory):
            for log in (*top.glob("*.log"), *top.glob("dtjob-node-*/*.log")):
                prefix = "" if log.parent == top else f"{log.parent.name}-"
                shutil.copy2(log, directory / f"{prefix}{log.name}")
