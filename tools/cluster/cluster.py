# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests need of a cluster: the bare node, kind, or one that is there already gives it.

A test asks for the fixture `cluster` and for nothing of the provider behind it.
"""

import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tools.cluster.rest import Object
from tools.images import Image


class UnsupportedError(Exception):
    """This provider cannot do that; the message says why in one line. A test that lets it pass is skipped."""


class Cluster(Protocol):
    """A running cluster. `nodes` are the names of those that take pods; `kubeconfig` is an administrator's."""

    name: str
    """How a line about this provider calls it: "the bare node", "kind", "the cluster of DTJOB_KUBECONFIG"."""
    kubeconfig: Path
    nodes: tuple[str, ...]

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator. With `check`, a failure raises AssertionError with what kubectl said."""

    def load(self, image: Image) -> str:
        """Bring a built image to every node, once; returns the reference by which manifests ask for it."""

    def claim(self, namespace: str, name: str, *, shared: bool = False) -> None:
        """Make a PersistentVolumeClaim that uid 1000 can write to: ReadWriteOnce, or with `shared` ReadWriteMany.

        Raises UnsupportedError where there is no such storage.
        """

    def kill_container(self, pod: Object, container: str) -> None:
        """SIGKILL the first process of a pod's container, as the kernel's out-of-memory killer would.

        Raises UnsupportedError where nobody can from outside.
        """

    def stop_kubelet(self, node: str) -> None:
        """Stop a node's kubelet: to the cluster the node is gone, its containers run on. Raises UnsupportedError."""

    def start_kubelet(self, node: str) -> None:
        """Start it again."""

    def network_policies(self) -> AbstractContextManager[str]:
        """Within it NetworkPolicies are enforced, at least for the pods of one node, whose name it gives. Raises
        UnsupportedError."""

    def write_logs(self, directory: Path) -> None:
        """Write the logs of the cluster's own programs into a directory that is there, as far as they are to be had."""


def container_id(pod: Object, container: str) -> str:
    """containerd's id of a pod's running container, by the pod's status."""
    [status] = [one for one in pod["status"]["containerStatuses"] if one["name"] == container]
    return str(status["containerID"]).removeprefix("containerd://")
