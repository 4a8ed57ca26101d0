"""Nothing of a node is left when it is gone, however it went. These tests start nodes of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.test_control_plane import processes_of
from tests.e2e import leftovers
from tests.e2e.node import Node, directory

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import signal
from tests.e2e.node import Node
from tests.tools import binaries
with Node(binaries.find(binaries.NODE)) as node:
    print(node.control_plane.directory, flush=True)
    signal.pause()
"""


def mounts(top: Path) -> list[str]:
    """The machine's mounts that lie in this directory."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(top) in line]


def assert_nothing_left(plane: Path) -> None:
    for top in (directory(), plane):
        assert not top.exists()
        assert processes_of(top) == []
        assert mounts(top) == []
    assert leftovers.cgroups() == []
    assert not leftovers.link_exists()


def network_interfaces() -> set[Path]:
    return set(Path("/sys/class/net").iterdir())


def test_nothing_is_left_after_a_stop_and_after_a_kill(node_programs: dict[str, Path]) -> None:
    interfaces, flags = network_interfaces(), kernel_flags()
    with Node(node_programs) as first:
        assert "Ready" in first.kubectl("get", "nodes").stdout
        assert leftovers.link_exists()
        assert leftovers.cgroups()
    assert_nothing_left(first.control_plane.directory)
    plane = start_and_kill()
    # The janitor is at work meanwhile: a new node waits for it.
    with Node(node_programs) as third:
        assert not plane.exists()
        assert "Ready" in third.kubectl("get", "nodes").stdout
    assert_nothing_left(third.control_plane.directory)
    assert network_interfaces() == interfaces
    assert kernel_flags() == flags


def test_a_new_node_clears_what_an_old_one_and_its_janitor_left(node_programs: dict[str, Path]) -> None:
    plane = start_and_kill(janitors=True)
    assert directory().exists()
    with Node(node_programs) as node:
        assert "Ready" in node.kubectl("get", "nodes").stdout
    shutil.rmtree(plane)  # this one's janitor was killed too
    assert_nothing_left(plane)


def start_and_kill(janitors: bool = False) -> Path:
    """Start a node in a process, kill that (before it its janitors), and return its control plane's directory."""
    parent = subprocess.Popen([sys.executable, "-c", HOLD], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    plane = Path(parent.stdout.readline().strip())
    assert processes_of(plane)
    for child in children(parent.pid) if janitors else []:
        if sys.executable.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(child, signal.SIGKILL)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    return plane


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kernel_flags() -> list[str]:
    """Settings of the whole machine that a kubelet or a network plugin would change."""
    names = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
    return [Path("/proc/sys", name).read_text() for name in names]
