# SPDX-License-Identifier: Apache-2.0
"""The commands of helm on the pages work, by real helm on a real API server, and so does the manifest without helm."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.support.chart import CHART, NAMESPACE, AuditedControlPlane, Helm
from tests.unit.page_runs import everywhere, filled
from tools.chart import manifest
from tools.cluster.rest import Api

SECOND, WATCHED = "dtjob-a", ("team-a", "team-a-test")
"""The release of docs/operate/tenants.md beside the first one, and the namespaces that it watches."""
ORDER = ("install", "upgrade", "history", "get", "rollback", "uninstall")
"""The commands of helm on the pages, in the order in which they are run."""


@pytest.fixture(scope="module")
def cluster(audited_cluster: AuditedControlPlane) -> AuditedControlPlane:
    """A control plane where only the chart installs dtjob."""
    return audited_cluster


@pytest.fixture(scope="module")
def api(cluster: AuditedControlPlane) -> Api:
    return Api(cluster.kubeconfig)


@pytest.fixture
def two_releases(helm: Helm, api: Api) -> Iterator[Helm]:
    """helm, with the namespaces that the second release watches: it makes a role in each."""
    for name in WATCHED:
        api.create("namespaces", None, {"metadata": {"name": name}})
    yield helm
    helm("uninstall", SECOND, f"--namespace={SECOND}", check=False)
    for name in WATCHED:
        api.delete("namespaces", None, name)


def test_the_helm_commands_of_the_pages_work(two_releases: Helm) -> None:
    """There are no nodes, so `--wait` is left out. A release is installed once; the other ways are only tried."""
    commands = [_arguments(words) for words in everywhere("cluster").values() if words[0] == "helm"]
    assert {words[0] for words in commands} == set(ORDER)
    installed: set[str] = set()
    for words in sorted(commands, key=lambda words: ORDER.index(words[0])):
        trial = ["--dry-run=server"] if words[0] == "install" and words[1] in installed else []
        two_releases(*words, *trial)
        installed.add(words[1])
    assert SECOND in installed


def _arguments(words: list[str]) -> list[str]:
    """The arguments of helm; the chart is found from everywhere."""
    return [str(CHART) if word == "helm/dtjob" else word for word in filled(words[1:]) if word != "--wait"]


def test_the_manifest_without_helm_is_taken(cluster: AuditedControlPlane, helm_program: Path, tmp_path: Path) -> None:
    command = "kubectl apply --server-side -f build/dtjob.yaml"
    words = everywhere("cluster")[command][1:]
    made = tmp_path / "dtjob.yaml"
    made.write_text(manifest(helm_program))
    done = cluster.kubectl(*words[:-1], str(made), "--dry-run=server")
    assert f"namespace/{NAMESPACE} serverside-applied (server dry run)" in done.stdout
    assert "deployment.apps/dtjob serverside-applied (server dry run)" in done.stdout
