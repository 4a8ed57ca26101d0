# SPDX-License-Identifier: Apache-2.0
"""The nodes' network: a bridge for each node's pods in the nodes' namespace, and a link from there to the host.

    pods 10.244.0.10-254 -- cni0 10.244.0.1 [nodes' namespace] 10.244.255.2 -- dtjob0 10.244.255.1 [host: API server]
    pods 10.244.1.10-254 -- cni1 10.244.1.1 [ the same one   ]

Pods reach each other, the API server and nothing beyond the host; the host reaches every pod.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from tools.node.leftovers import LINK
from tools.node.namespaces import Namespaces, run

HOST = "10.244.255.1"
"""The host's address on the link: the API server listens there."""
KUBERNETES_SERVICE = "10.96.0.1"
_NODES_END = "10.244.255.2"


@dataclass(frozen=True)
class Subnet:
    """The network of one node's pods, numbered from 0."""

    number: int

    @property
    def bridge(self) -> str:
        """The bridge's name."""
        return f"cni{self.number}"

    @property
    def node(self) -> str:
        """The node's address, on the bridge."""
        return f"10.244.{self.number}.1"

    @property
    def hardware_address(self) -> str:
        """The bridge's, one that is locally administered."""
        return f"0a:58:0a:f4:{self.number:02x}:01"

    @property
    def pods(self) -> str:
        """Every pod's address is in here."""
        return f"10.244.{self.number}.0/24"

    @property
    def cni(self) -> dict[str, object]:
        """What the network plugins are told."""
        ranges = [[{"subnet": self.pods, "rangeStart": f"10.244.{self.number}.10"}]]
        bridge = {
            "type": "bridge",
            "bridge": self.bridge,
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]},
        }
        portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
        return {"cniVersion": "0.4.0", "name": "dtjob", "plugins": [bridge, portmap]}

    def write_cni(self, directory: Path) -> None:
        """The network that containerd gives to pods."""
        directory.mkdir(parents=True)
        (directory / "10-dtjob.conflist").write_text(json.dumps(self.cni))


DNS = Subnet(0).node
"""Where CoreDNS listens."""


def start(namespaces: Namespaces) -> None:
    """Make link and routes. Raises AssertionError where the machine uses these names or addresses itself."""
    run("ip", "link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", str(namespaces.pid))
    namespaces.run("ip", "link", "set", "lo", "up")
    namespaces.run("ip", "address", "add", f"{_NODES_END}/30", "dev", "eth0")
    namespaces.run("ip", "link", "set", "eth0", "up")
    namespaces.run("ip", "route", "add", "default", "via", HOST)
    namespaces.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")  # of this namespace only
    run("ip", "address", "add", f"{HOST}/30", "dev", LINK)
    run("ip", "link", "set", LINK, "up")


def add(namespaces: Namespaces, subnet: Subnet) -> None:
    """Make a node's bridge. Raises AssertionError as `start` does."""
    # By itself a bridge has the lowest address of its pods', and pods that run lose it when another one comes or goes.
    namespaces.run("ip", "link", "add", subnet.bridge, "address", subnet.hardware_address, "type", "bridge")
    namespaces.run("ip", "address", "add", f"{subnet.node}/24", "dev", subnet.bridge)
    namespaces.run("ip", "link", "set", subnet.bridge, "up")
    run("ip", "route", "add", subnet.pods, "via", _NODES_END)


def route_kubernetes_service(namespaces: Namespaces, port: int) -> None:
    """Let pods reach the API server under the address that the kubelet gives them; there is no kube-proxy."""
    rule = f"PREROUTING -d {KUBERNETES_SERVICE} -p tcp --dport 443 -j DNAT --to-destination {HOST}:{port}"
    namespaces.run("iptables", "-t", "nat", "-A", *rule.split())
