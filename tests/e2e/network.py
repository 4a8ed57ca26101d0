"""The node's network: a bridge for the pods in the node's namespace, and a link from there to the host.

    pods 10.244.0.10-254 -- cni0 10.244.0.1 [node's namespace] 10.244.255.2 -- dtjob0 10.244.255.1 [host: API server]

Pods reach each other, the API server and nothing beyond the host; the host reaches every pod.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.leftovers import LINK
from tests.e2e.namespaces import Namespaces, run

HOST = "10.244.255.1"
"""The host's address on the link: the API server listens there."""
NODE = "10.244.0.1"
"""The node's address, on the pods' bridge. CoreDNS listens there too."""
PODS = "10.244.0.0/24"
KUBERNETES_SERVICE = "10.96.0.1"
_NODES_END = "10.244.255.2"

CNI = {
    "cniVersion": "0.4.0",
    "name": "dtjob",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": PODS, "rangeStart": "10.244.0.10"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


def start(namespaces: Namespaces) -> None:
    """Make bridge, link and routes. Raises AssertionError where the machine uses these names or addresses itself."""
    run("ip", "link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", str(namespaces.pid))
    namespaces.run("ip", "link", "set", "lo", "up")
    namespaces.run("ip", "address", "add", f"{_NODES_END}/30", "dev", "eth0")
    namespaces.run("ip", "link", "set", "eth0", "up")
    namespaces.run("ip", "route", "add", "default", "via", HOST)
    namespaces.run("ip", "link", "add", "cni0", "type", "bridge")
    namespaces.run("ip", "address", "add", f"{NODE}/24", "dev", "cni0")
    namespaces.run("ip", "link", "set", "cni0", "up")
    namespaces.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")  # of this namespace only
    run("ip", "address", "add", f"{HOST}/30", "dev", LINK)
    run("ip", "link", "set", LINK, "up")
    run("ip", "route", "add", PODS, "via", _NODES_END)


def route_kubernetes_service(namespaces: Namespaces, port: int) -> None:
    """Let pods reach the API server under the address that the kubelet gives them; there is no kube-proxy."""
    rule = f"PREROUTING -d {KUBERNETES_SERVICE} -p tcp --dport 443 -j DNAT --to-destination {HOST}:{port}"
    namespaces.run("iptables", "-t", "nat", "-A", *rule.split())


def write_cni(directory: Path) -> None:
    """The network that containerd gives to pods."""
    directory.mkdir(parents=True)
    (directory / "10-dtjob.conflist").write_text(json.dumps(CNI))
