# SPDX-License-Identifier: Apache-2.0
"""What `cluster` promises the end-to-end tests (cluster.py), watched on whichever provider there is."""

from pathlib import Path

import pytest

from tests.e2e.support import evidence
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api
from tools.node import busybox
from tools.node.busybox import FOREVER, enforce_restricted, in_phase, pod


@pytest.fixture(scope="module")
def image(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    return cluster.load(busybox.write(tmp_path_factory.mktemp("image")))


@pytest.mark.parametrize("shared", [False, True])
def test_a_claim_keeps_what_a_pod_writes_and_is_its_own_volume(
    shared: bool, api: Api, cluster: Cluster, namespace: str, image: str
) -> None:
    enforce_restricted(api, namespace)
    cluster.claim(namespace, "one", shared=shared)
    cluster.claim(namespace, "two", shared=shared)
    api.create("pods", namespace, pod("a", image, "/bin/sh", "-c", "echo kept >/volume/file", claim="one"))
    node = in_phase(api, namespace, "a", "Succeeded")["spec"]["nodeName"]
    other = next((name for name in cluster.nodes if name != node), node) if shared else node
    selector = {"kubernetes.io/hostname": other}
    read = ("/bin/sh", "-c", 'test "$(cat /volume/file)" = kept')
    missing = ("/bin/sh", "-c", "if cat /volume/file; then exit 1; fi")
    api.create("pods", namespace, pod("b", image, *read, claim="one", nodeSelector=selector))
    api.create("pods", namespace, pod("c", image, *missing, claim="two"))
    in_phase(api, namespace, "b", "Succeeded")
    in_phase(api, namespace, "c", "Succeeded")


def test_a_killed_container_ends_with_137(api: Api, cluster: Cluster, namespace: str, image: str) -> None:
    api.create("pods", namespace, pod("victim", image, *FOREVER))
    running = in_phase(api, namespace, "victim", "Running")
    cluster.kill_container(running, "main")
    [status] = in_phase(api, namespace, "victim", "Failed")["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 137


def test_the_files_of_a_failing_test_have_logs_events_and_objects(
    api: Api, cluster: Cluster, namespace: str, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DTJOB_E2E_ARTIFACTS", str(tmp_path))
    api.create("pods", namespace, pod("talker", image, "/bin/echo", "last words"))
    in_phase(api, namespace, "talker", "Succeeded")
    left = evidence.collect(cluster, "test_of[a thing]", [namespace, "no namespace"])
    assert left.name.startswith("test-of-a-thing-")
    assert "last words" in (left / namespace / "talker.log").read_text()
    assert "Started" in (left / namespace / "events.txt").read_text()
    assert "phase: Succeeded" in (left / namespace / "pods.yaml").read_text()
    assert cluster.nodes[0] in (left / "nodes.yaml").read_text()
    assert not (left / "no namespace").exists()
