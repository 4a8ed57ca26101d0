# SPDX-License-Identifier: Apache-2.0
"""A kubelet in its node's namespaces, with credentials as a kubelet has them."""

from pathlib import Path

import yaml

from tools.cluster.control_plane import LOST_NODE_SECONDS
from tools.cluster.program import Program
from tools.node import cgroup, network
from tools.node.namespaces import Namespaces, run
from tools.node.network import Subnet


def client_certificate(directory: Path) -> Path:
    """By which kubelets know the API server."""
    return directory / "kubelet-client.crt"


def write_api_credentials(directory: Path) -> tuple[str, ...]:
    """Make the certificate by which kubelets know the API server; return kube-apiserver's arguments for it."""
    key, certificate = directory / "kubelet-client.key", client_certificate(directory)
    made = "openssl req -x509 -nodes -days 30 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj"
    run(*made.split(), "/O=system:masters/CN=kube-apiserver", "-keyout", str(key), "-out", str(certificate))
    return (
        f"--kubelet-client-certificate={certificate}",
        f"--kubelet-client-key={key}",
        "--kubelet-preferred-address-types=InternalIP",
        "--enable-admission-plugins=NodeRestriction",
    )


class Kubelet:
    """The kubelet of one node. It may be stopped and started again: the node is gone, and back."""

    def __init__(self, namespaces: Namespaces, name: str, subnet: Subnet, binary: Path, socket: Path) -> None:
        self._directory = namespaces.directory
        self._subnet = subnet
        self._name = name
        self._socket = socket
        self._command = namespaces.entering(
            str(binary),
            f"--config={self._directory / 'kubelet.yaml'}",
            f"--kubeconfig={self._directory / 'kubelet.kubeconfig'}",
            f"--hostname-override={name}",
            f"--node-ip={subnet.node}",
        )

    def configure(self, kubeconfig: str, client_ca: Path) -> None:
        """Write what the kubelet reads, and make the cgroup of its pods."""
        (self._directory / "kubelet.kubeconfig").write_text(kubeconfig)
        (self._directory / "kubelet.yaml").write_text(yaml.safe_dump(self._config(client_ca)))
        cgroup.make(self._name)

    def start(self) -> None:
        """Start the kubelet. Its node is Ready a few seconds later."""
        self.program = Program("kubelet", self._command, self._directory)

    def stop(self) -> None:
        """Stop the kubelet; containers run on."""
        self.program.stop()

    def _config(self, client_ca: Path) -> dict[str, object]:
        never = dict.fromkeys(("imagefs.available", "nodefs.available", "nodefs.inodesFree"), "0%")
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self._subnet.node,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(client_ca)},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cgroup.name(self._name)}",
            "clusterDNS": [network.DNS],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "enforceNodeAllocatable": [],
            "evictionHard": {"memory.available": "0%", **never},
            "failCgroupV1": False,
            "failSwapOn": False,
            "healthzPort": 0,  # all nodes share one loopback
            "imageGCHighThresholdPercent": 100,
            "makeIPTablesUtilChains": False,
            "nodeLeaseDurationSeconds": LOST_NODE_SECONDS,  # renewed four times in it
            "resolvConf": "",  # pods know the cluster's names only
            "volumePluginDir": "/var/lib/kubelet/plugins",
        }
