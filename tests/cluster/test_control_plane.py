# SPDX-License-Identifier: Apache-2.0
"""The control plane that the tests start: verified, collected by its controllers, and gone with its parent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.conftest import ROOT, Kubectl
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")


def processes_of(directory: Path) -> list[str]:
    """Command lines of the running processes that name this directory."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # ended meanwhile
            continue
        if str(directory) in line:
            found.append(line)
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_nothing_is_left_when_the_parent_is_killed(cluster: ControlPlane) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-m", "tools.cluster.control_plane"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout
    directory = Path(parent.stdout.readline().partition("=")[2].strip()).parent
    assert all(any(name in line for line in processes_of(directory)) for name in PROGRAMS)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not directory.exists() and not processes_of(directory))


def test_owned_objects_are_collected(api: Api, namespace: str, kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "owner")
    owner = api.get("configmaps", namespace, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    meta = {"name": "owned", "ownerReferences": [reference]}
    api.create("configmaps", namespace, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    api.delete("configmaps", namespace, "owner")
    api.wait_for("configmaps", namespace, "owned", lambda item: item is None)
