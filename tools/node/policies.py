# SPDX-License-Identifier: Apache-2.0
"""kube-router on one node: it enforces NetworkPolicies there, and does nothing else.

All nodes share one network namespace, and kube-router removes the rules of pods that are on another node. So only one
node can have it. It reads who pods are from the API server, and writes iptables rules and ipsets.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tools.cluster.program import Program
from tools.node.machine import Machine

PACKAGES = {"ipset": "ipset"}
"""What kube-router calls beside iptables, and the Debian package that has it."""
_BRIDGED = "/proc/sys/net/bridge/bridge-nf-call-iptables"
"""Of the nodes' namespace only: whether iptables sees packets between pods of one bridge."""
_READY = "KUBE-ROUTER-FORWARD"


@contextlib.contextmanager
def enforced(machine: Machine, binary: Path, kubeconfig: Path) -> Iterator[None]:
    """Enforce the policies of this node's pods, until the end of `with`."""
    namespaces = machine.namespaces
    namespaces.run("sh", "-c", f"echo 1 >{_BRIDGED}")
    command = namespaces.entering(
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={machine.name}",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        "--run-loadbalancer=false",
        "--service-cluster-ip-range=10.96.0.0/16",
    )
    program = Program("kube-router", command, namespaces.directory)
    try:
        program.wait_until(lambda: _READY in namespaces.run("iptables-save", "-t", "filter"))
        yield
    finally:
        program.stop()
        # Its own --cleanup-config needs IPVS. The nodes put nothing else into this table.
        namespaces.run("sh", "-c", f"iptables -F && iptables -X && ipset destroy && echo 0 >{_BRIDGED}")
