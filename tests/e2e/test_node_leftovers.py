# SPDX-License-Identifier: Apache-2.0
"""Nothing of a node is left when it is gone, however it went. These tests start nodes of their own."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.test_control_plane import processes_of, wait_until
from tests.e2e.conftest import started_or_skipped
from tools.node import leftovers
from tools.node.node import directory, machine_lock

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import signal, sys
from tools import binaries
from tools.node.node import Node
from tools.node.packages import UnavailableError
from tools.programs import NODE
node = Node(binaries.find(NODE))
try:
    node.start()
except UnavailableError as error:
    print("unavailable:", error, flush=True)
    sys.exit(1)
print(node.control_plane.directory, flush=True)
signal.pause()
"""
"""A node in a process that may be killed. Says the control plane's directory, or why there can be no node."""


def mounts(top: Path) -> list[str]:
    """The machine's mounts that lie in this directory."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(top) in line]


def assert_nothing_left(plane: Path) -> None:
    with contextlib.ExitStack() as undo:
        machine_lock(undo)  # the node's janitor holds it to its end, and nobody starts another node meanwhile
        for top in (directory(), plane):
            assert not top.exists()
            assert [line for line in processes_of(top) if f"{directory()}.lock" not in line] == []
            assert mounts(top) == []
        assert leftovers.cgroups() == []
        assert not leftovers.link_exists()


def network_interfaces() -> set[Path]:
    return set(Path("/sys/class/net").iterdir())


class Machine(NamedTuple):
    interfaces: set[Path]
    flags: list[str]


@pytest.fixture(scope="module")
def before() -> Machine:
    return Machine(network_interfaces(), kernel_flags())


@pytest.fixture(scope="module")
def stopped(before: Machine, node_programs: dict[str, Path]) -> list[Path]:
    """The control planes' directories of two nodes: one that was killed with its janitors, and one that was started on
    what that had left, and stopped. Skips the tests where there can be none."""
    left = start_and_kill(janitors=True)
    assert left.exists()
    assert directory().exists()
    node = started_or_skipped(node_programs)
    try:
        assert "Ready" in node.kubectl("get", "nodes").stdout
        there = [leftovers.link_exists(), leftovers.cgroups(), node.control_plane.directory.exists()]
    finally:
        node.stop()
    assert all(there)
    shutil.rmtree(left)  # the first one's janitor was killed too
    return [left, node.control_plane.directory]


@pytest.mark.slow  # the nodes of every run are stopped, too; this one looks at what is left
def test_nothing_is_left_after_a_stop_also_of_what_was_found(before: Machine, stopped: list[Path]) -> None:
    for plane in stopped:
        assert_nothing_left(plane)
    assert network_interfaces() == before.interfaces
    assert kernel_flags() == before.flags


def test_nothing_is_left_after_a_kill(before: Machine, node_programs: dict[str, Path]) -> None:
    plane = start_and_kill()
    wait_until(lambda: not processes_of(plane))
    assert_nothing_left(plane)
    assert network_interfaces() == before.interfaces
    assert kernel_flags() == before.flags


def start_and_kill(janitors: bool = False) -> Path:
    """Start a node in a process, kill that (before it its janitors), and return its control plane's directory. Skips
    where there can be no node."""
    parent = subprocess.Popen([sys.executable, "-c", HOLD], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    said = parent.stdout.readline().strip()
    if said.startswith("unavailable:"):
        parent.wait()
        pytest.skip(f"no node: {said.removeprefix('unavailable: ')}")
    assert said, "the node's process ended"
    plane = Path(said)
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
