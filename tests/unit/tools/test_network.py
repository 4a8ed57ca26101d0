# SPDX-License-Identifier: Apache-2.0
"""A node's bridge, in a network namespace that nothing else uses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOW, LOWER = "02:00:00:00:00:02", "02:00:00:00:00:01"
BRIDGE = f"""
from types import SimpleNamespace

from tools.node import network
from tools.node.namespaces import run

def address():
    return run("ip", "-o", "link", "show", "cni0").partition("link/ether ")[2].split()[0]

def pod(name, address):
    run("ip", "link", "add", name, "address", address, "type", "veth", "peer", "name", name + "-eth0")
    run("ip", "link", "set", name, "master", "cni0")

network.run = lambda *command: ""  # the host's route there
network.add(SimpleNamespace(run=run), network.Subnet(0))
seen = [address()]
pod("pod0", "{LOW}")
seen.append(address())
pod("pod1", "{LOWER}")
seen.append(address())
run("ip", "link", "del", "pod1")
seen.append(address())
print(*seen)
"""
UNSHARE = ("unshare", "--net")


def can_unshare() -> bool:
    """Whether a network of one's own is to be had."""
    try:
        return (
            subprocess.run([*UNSHARE, "ip", "link", "add", "cni0", "type", "bridge"], capture_output=True).returncode
            == 0
        )
    except OSError:
        return False


@pytest.mark.skipif(os.geteuid() != 0 or not can_unshare(), reason="needs root, ip and network namespaces with bridges")
def test_a_bridge_keeps_its_address_as_pods_come_and_go() -> None:
    # Where it changes, running pods send to the old one for half a minute: neither names nor other nodes are there.
    command = [*UNSHARE, sys.executable, "-c", BRIDGE]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "operator")])}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(set(done.stdout.split())) == 1, done.stdout
