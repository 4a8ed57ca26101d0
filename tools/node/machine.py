# SPDX-License-Identifier: Apache-2.0
"""One node of the bare cluster: a containerd and a kubelet, with files and a pods' network of their own."""

import contextlib
from pathlib import Path

from tools.node import image_store, network
from tools.node.containerd import Containerd
from tools.node.kubelet import Kubelet
from tools.node.namespaces import Namespaces
from tools.node.network import Subnet


class Machine:
    """A node, numbered from 0. Attributes: `name`, `user` (its kubelet's, with its group), `containerd`, `kubelet`.

    All nodes share the processes and the network of `outer`, and so end with it; mounts are each one's own.
    """

    def __init__(self, number: int, directory: Path, outer: Namespaces) -> None:
        self.name = f"dtjob-node-{number + 1}"
        self.user = (f"system:node:{self.name}", "system:nodes")
        self.subnet = Subnet(number)
        self.directory = directory / self.name
        self.directory.mkdir()
        self.namespaces = Namespaces(self.directory, outer)

    def start_network(self, undo: contextlib.ExitStack) -> None:
        """Make the node's mounts and its pods' network. Raises ProgramError or AssertionError where that is refused."""
        self.namespaces.start()
        undo.callback(self.namespaces.stop)
        network.add(self.namespaces, self.subnet)

    def start(self, undo: contextlib.ExitStack, kubelet: Path, kubeconfig: str, client_ca: Path) -> None:
        """Start containerd and the kubelet; its node is Ready a few seconds later."""
        image_store.give(self.directory / "lib" / "containerd")
        self.containerd = Containerd(self.namespaces, self.subnet)
        self.containerd.start()
        undo.callback(self.containerd.stop)
        self.kubelet = Kubelet(self.namespaces, self.name, self.subnet, kubelet, self.containerd.socket)
        self.kubelet.configure(kubeconfig, client_ca)
        self.kubelet.start()
        undo.callback(self.kubelet.stop)
