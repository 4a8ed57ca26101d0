# SPDX-License-Identifier: Apache-2.0
"""What kind is told and asked; a cluster by it needs Docker and is watched in tests/e2e."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tools.cluster import kind


def test_every_node_has_the_one_directory_for_volumes() -> None:
    nodes = kind.config(Path("/somewhere"))["nodes"]
    assert [node["role"] for node in nodes] == ["control-plane", "worker", "worker"]
    mounts = [{"hostPath": "/somewhere", "containerPath": str(kind.VOLUMES)}]
    assert all(node["extraMounts"] == mounts for node in nodes)


def test_a_lost_node_is_noticed_as_soon_as_on_the_bare_node() -> None:
    """kind merges a patch without apiVersion, with maps of arguments, into the configuration that it writes itself."""
    [text] = kind.config(Path("/somewhere"))["kubeadmConfigPatches"]
    patch = yaml.safe_load(text)
    assert set(patch) == {"kind", "apiServer", "controllerManager"}
    assert patch["controllerManager"]["extraArgs"] == {"node-monitor-grace-period": "20s"}
    assert patch["apiServer"]["extraArgs"] == {"default-unreachable-toleration-seconds": "30"}


def test_nodes_are_dockers_containers() -> None:
    expected = ["docker", "exec", "dtjob-e2e-worker", "systemctl", "stop", "kubelet"]
    assert kind.docker_exec("dtjob-e2e-worker", "systemctl", "stop", "kubelet") == expected


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Creating cluster ...\nERROR: no docker\n\nCommand Output: x", "ERROR: no docker"),
        ("cannot\n", "cannot"),
        ("", "it failed silently"),
    ],
)  # fmt: skip
def test_the_reason_is_kinds_own(said: str, told: str) -> None:
    assert kind.complaint(said) == told


def test_a_docker_client_without_its_daemon_is_no_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexit 1\n")
    docker.chmod(0o755)
    assert not kind.docker_answers()
    docker.write_text("#!/bin/sh\nexit 0\n")
    assert kind.docker_answers()


def test_the_janitor_waits_for_its_input_and_hides_what_the_command_says(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    command = ["sh", "-c", kind.JANITOR, "sh", "sh", "-c", f"echo noise; echo done >{mark}"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.poll() is None
    assert not mark.exists()
    assert process.communicate()[0] == b""
    assert mark.read_text() == "done\n"
