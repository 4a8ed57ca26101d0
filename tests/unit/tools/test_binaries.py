# SPDX-License-Identifier: Apache-2.0
"""Where the Kubernetes programs come from; a real build is watched by `python tools/binaries.py`."""

from pathlib import Path

import pytest

from tools import binaries, programs
from tools.programs import CONTROL_PLANE, NODE, TOOLS, Tool


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_envtests_programs_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    cached = [program(TOOLS[name].cached) for name in ("etcd", "kube-controller-manager")]
    own = program(tmp_path / "etcd")
    assert binaries.find(["etcd", "kube-controller-manager"]) == {"etcd": own, "kube-controller-manager": cached[1]}


def test_a_cached_program_is_not_built_again(capsys: pytest.CaptureFixture[str]) -> None:
    for tool in TOOLS.values():
        program(tool.cached)
    assert set(binaries.find()) == {"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"}
    assert capsys.readouterr().out == ""


def test_only_what_is_asked_for_is_looked_for() -> None:
    for name in NODE:
        program(TOOLS[name].cached)
    assert set(binaries.find(NODE)) == {*CONTROL_PLANE, "kube-scheduler", "kubelet", "coredns"}
    assert binaries.main(["node"]) == 0
    assert binaries.main(["kubelets"]) == 2


@pytest.mark.parametrize(
    ("name", "version"), [("etcd", "v3."), ("kubelet", "v1."), ("coredns", "v1."), ("helm", "v4."), ("helm-3", "v3.")]
)
def test_a_programs_place_is_its_own_modules_version(name: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = TOOLS[name]
    assert tool.version.startswith(version)
    before = tool.cached
    monkeypatch.setattr(Tool, "version", property(lambda tool: "v9.9.9"))
    assert tool.cached != before


def test_a_program_knows_the_module_that_it_comes_from() -> None:
    roots = {name: TOOLS[name].required[0] for name in ("kueue", "helm", "kubelet")}
    assert roots == {"kueue": "sigs.k8s.io/kueue", "helm": "helm.sh/helm/v4", "kubelet": "k8s.io/kubernetes"}


def test_helm_3_knows_its_version_and_a_version_of_kubernetes() -> None:
    linker = TOOLS["helm-3"].flags[-1]
    assert f"internal/version.version={TOOLS['helm-3'].version}" in linker
    assert "k8sVersionMajor=1 " in linker
    assert int(linker.rpartition("k8sVersionMinor=")[2]) >= 30


def test_programs_carry_their_version_and_other_flags_are_another_place(monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl = TOOLS["kubectl"]
    assert any("gitVersion=v1." in flag for flag in kubectl.flags)
    before = kubectl.cached
    monkeypatch.setattr(programs, "_VERSION_PACKAGE", "other")
    assert kubectl.cached != before


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


@pytest.mark.parametrize(("version", "known"), [("go1.26.8", (1, 26)), ("go1.9", (1, 9)), ("devel", None)])
def test_gos_version_is_read(tmp_path: Path, version: str, known: tuple[int, int] | None) -> None:
    go = program(tmp_path / "go", f"#!/bin/sh\necho go version {version} linux/amd64\n")
    assert binaries._go_version(str(go), {"PATH": "/usr/bin:/bin"}) == known


def test_no_go_at_all_is_noticed(tmp_path: Path) -> None:
    assert binaries._go_version(str(tmp_path / "go"), {}) is None
