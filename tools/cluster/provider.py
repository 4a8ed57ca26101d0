# SPDX-License-Identifier: Apache-2.0
"""Which cluster the end-to-end tests run on: one that is named, else kind, else this machine as a bare node."""

import os
from collections.abc import Callable
from typing import Protocol

from tools import binaries
from tools.cluster import kind
from tools.cluster.bare_node import BareNode
from tools.cluster.cluster import Cluster
from tools.cluster.existing import ExistingCluster
from tools.kind import docker
from tools.node import packages
from tools.node.packages import UnavailableError
from tools.programs import NODE


class Provider(Cluster, Protocol):
    """A cluster that can be started and stopped. `start` raises UnavailableError where there can be none."""

    def start(self) -> None:
        """Return when the nodes are Ready."""

    def stop(self) -> None:
        """End what was started."""


def choose(say: Callable[[str], None] = print) -> Provider:
    """The provider for this machine, not started. Finds, installs or builds what it needs, and says so.

    Raises UnavailableError or BinariesError where that is not possible.
    """
    if os.environ.get("DTJOB_KUBECONFIG"):
        return ExistingCluster(binaries.find(["kubectl"], say)["kubectl"])
    if docker.answers():
        return kind.KindCluster(kind.programs(say))
    try:
        packages.ensure(say)
    except UnavailableError as error:
        raise UnavailableError(f"{error} (or Docker for kind, or a cluster by DTJOB_KUBECONFIG)") from None
    return BareNode(binaries.find(NODE, say))
