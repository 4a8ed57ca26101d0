# SPDX-License-Identifier: Apache-2.0
"""Where the Kubernetes programs come from; a real build is watched by `python tools/binaries.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import binaries
from tools.programs import TOOLS, VERSIONS, Tool, kubernetes


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("DTJOB_KUBERNETES", raising=False)


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("name", "version"), [("etcd", "v3."), ("kubelet", "v1."), ("coredns", "v1."), ("helm", "v4."), ("helm-3", "v3.")]
)
def test_a_programs_place_is_its_own_modules_version(name: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = TOOLS[name]
    assert tool.version.startswith(version)
    before = tool.cached
    monkeypatch.setattr(Tool, "version", property(lambda tool: "v9.9.9"))
    assert tool.cached != before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_variable_chooses_the_version_of_kubernetes(version: str) -> None:
    command = [sys.executable, "-c", "from tools.programs import TOOLS; print(TOOLS['kubeadm'].version)"]
    environment = {**os.environ, "DTJOB_KUBERNETES": version}
    assert subprocess.check_output(command, env=environment, text=True).startswith(f"v{version}.")


def test_a_version_that_nobody_has_pinned_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"DTJOB_KUBERNETES is 1\.29: write one of 1\.34, "):
        kubernetes("1.29")


def test_programs_that_are_there_are_taken_unless_a_version_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = program(tmp_path / "assets" / "kube-apiserver")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(there.parent))
    assert binaries.present("kube-apiserver") == there
    monkeypatch.setenv("DTJOB_KUBERNETES", VERSIONS[0])
    assert binaries.present("kube-apiserver") is None


def test_helm_3_knows_its_version_and_a_version_of_kubernetes() -> None:
    linker = TOOLS["helm-3"].flags[-1]
    assert f"internal/version.version={TOOLS['helm-3'].version}" in linker
    assert "k8sVersionMajor=1 " in linker
    assert int(linker.rpartition("k8sVersionMinor=")[2]) >= 30


def test_a_build_that_fails_says_why_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = "echo go version go1.26.0 linux/amd64"
    program(
        tmp_path / "bin" / "go", f'#!/bin/sh\n[ "$1" = version ] && {version} && exit\necho no such module; exit 1\n'
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    said: list[str] = []
    with pytest.raises(binaries.BinariesError, match="no such module"):
        binaries.find(["etcd"], said.append)
    assert "building etcd with Go" in said[0]
    assert list(TOOLS["etcd"].cached.parent.iterdir()) == []
