"""The kubelet in the node's namespaces, with credentials as a kubelet has them."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.cluster.program import Program
from tests.e2e import leftovers, network
from tests.e2e.namespaces import Namespaces, run

NAME = "dtjob-node"
USER = (f"system:node:{NAME}", "system:nodes")


def write_api_credentials(directory: Path) -> tuple[str, ...]:
    """Make the certificate by which the kubelet knows the API server; return kube-apiserver's arguments for it."""
    key, certificate = directory / "kubelet-client.key", directory / "kubelet-client.crt"
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

    def __init__(self, namespaces: Namespaces, binary: Path, socket: Path, kubeconfig: str) -> None:
        directory = self._directory = namespaces.directory
        (directory / "kubelet.kubeconfig").write_text(kubeconfig)
        (directory / "kubelet.yaml").write_text(yaml.safe_dump(_config(directory, socket)))
        for top in leftovers.hierarchies():
            (top / leftovers.CGROUP).mkdir()
        self._command = namespaces.entering(
            str(binary),
            f"--config={directory / 'kubelet.yaml'}",
            f"--kubeconfig={directory / 'kubelet.kubeconfig'}",
            f"--hostname-override={NAME}",
            f"--node-ip={network.NODE}",
        )

    def start(self) -> None:
        """Start the kubelet. Its node is Ready a few seconds later."""
        self.program = Program("kubelet", self._command, self._directory)

    def stop(self) -> None:
        """Stop the kubelet; containers run on."""
        self.program.stop()


def _config(directory: Path, socket: Path) -> dict[str, object]:
    never = dict.fromkeys(("imagefs.available", "nodefs.available", "nodefs.inodesFree"), "0%")
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": network.NODE,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(directory / "kubelet-client.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{leftovers.CGROUP}",
        "clusterDNS": [network.NODE],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{socket}",
        "enforceNodeAllocatable": [],
        "evictionHard": {"memory.available": "0%", **never},
        "failCgroupV1": False,
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "resolvConf": "",  # pods know the cluster's names only
        "volumePluginDir": "/var/lib/kubelet/plugins",
    }
