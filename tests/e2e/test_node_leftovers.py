"""Nothing of a node is left when it is gone, however it went. These tests start nodes of their own."""

from __future__ import annotations

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
from tools.node.node import Node, directory, machine_lock

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import signal
from tools.node.node import Node
from tools import binaries
with Node(binaries.find(binaries.NODE)) as node:
    print(node.control_plane.directory, flush=True)
    signal.pause()
"""


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
def stopped(before: Machine, node_programs: dict[str, Path]) -> Path:
    """The control plane's directory of a node that came and went. Skips the tests where there can be none."""
    node = started_or_skipped(node_programs)
    there = [leftovers.link_exists(), leftovers.cgroups(), node.control_plane.directory.exists()]
    node.stop()
    assert all(there)
    return node.control_plane.directory


def test_nothing_is_left_after_a_stop(before: Machine, stopped: Path) -> None:
    assert_nothing_left(stopped)
    assert network_interfaces() == before.interfaces
    assert kernel_flags() == before.flags


def test_nothing_is_left_after_a_kill(before: Machine, stopped: Path, node_programs: dict[str, Path]) -> None:
    plane = start_and_kill()
    wait_until(lambda: not processes_of(plane))
    assert_nothing_left(plane)
    assert network_interfaces() == before.interfaces
    assert kernel_flags() == before.flags


def test_a_new_node_clears_what_an_old_one_and_its_janitor_left(stopped: Path, node_programs: dict[str, Path]) -> None:
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
