# SPDX-License-Identifier: Apache-2.0
"""CoreDNS in the node's namespaces: the names of Services and of the pods behind headless ones."""

from pathlib import Path

from tools.cluster.program import Program, answers
from tools.node import network
from tools.node.namespaces import Namespaces

_COREFILE = """
.:53 {{
    bind {address}
    errors
    ready {address}:8181
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
        ttl 1
    }}
}}
"""


def start(namespaces: Namespaces, binary: Path, kubeconfig: str) -> Program:
    """Start CoreDNS and wait until it knows the cluster."""
    directory = namespaces.directory
    (directory / "coredns.kubeconfig").write_text(kubeconfig)
    corefile = directory / "Corefile"
    corefile.write_text(_COREFILE.format(address=network.DNS, kubeconfig=directory / "coredns.kubeconfig"))
    program = Program("coredns", namespaces.entering(str(binary), f"-conf={corefile}"), directory)
    program.wait_until(lambda: answers(f"http://{network.DNS}:8181/ready"))
    return program
