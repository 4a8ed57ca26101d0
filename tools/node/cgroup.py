# SPDX-License-Identifier: Apache-2.0
"""The cgroup of a node's pods, which weighs as much as a machine's.

The kubelet weighs pods among each other. Above them it knows nothing, and a cgroup weighs by itself no more than one
process: beside thirty that are busy, all pods of all nodes would get a thirtieth of the processors.
"""

import os
from pathlib import Path

from tools.node import leftovers

_FILES = {"cpu.shares": 1024, "cpu.weight": 100}
"""Where the kernel keeps a cgroup's weight (v1, v2), and what one process weighs by itself."""


def name(node: str) -> str:
    """Of a node's cgroup, below a hierarchy's root."""
    return f"{leftovers.CGROUP}/{node}"


def make(node: str) -> None:
    """Make a node's cgroup in every hierarchy, of the weight of as many processes as the machine has cores; that of
    all nodes weighs what they do together."""
    for top in leftovers.hierarchies():
        cgroup = top / name(node)
        cgroup.mkdir(parents=True)
        nodes = len([one for one in cgroup.parent.iterdir() if one.is_dir()])
        _weigh(cgroup, 1)
        _weigh(cgroup.parent, nodes)


def weigh(name: str, machines: int) -> None:
    """Let a cgroup below each hierarchy's root weigh as much as some machines. It is made if it is not there."""
    for top in leftovers.hierarchies():
        (top / name).mkdir(exist_ok=True)
        _weigh(top / name, machines)


def weight_of(cgroup: Path) -> float | None:
    """How many busy processes a cgroup weighs as much as; None in a hierarchy without weights."""
    kept = ((cgroup / file, one) for file, one in _FILES.items())
    return next((int(file.read_text()) / one for file, one in kept if file.exists()), None)


def _weigh(cgroup: Path, machines: int) -> None:
    for file, one in _FILES.items():
        if (cgroup / file).exists():
            (cgroup / file).write_text(str(machines * (os.cpu_count() or 1) * one))
