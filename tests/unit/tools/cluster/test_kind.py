# SPDX-License-Identifier: Apache-2.0
"""What kind and kubectl are asked for; the end-to-end tests on kind run `make e2e-kind`."""

import json
from pathlib import Path

import pytest

from tools.cluster.cluster import UnsupportedError
from tools.cluster.kind import KindCluster
from tools.images import IMAGES


@pytest.fixture
def cluster(tmp_path: Path) -> KindCluster:
    """One whose programs write down how they are called; kubectl prints `kubectl.out`."""
    programs = {}
    for name in ("kind", "kubectl"):
        programs[name] = tmp_path / name
        programs[name].write_text('#!/bin/sh\necho "$@" >>"$0.calls"\ncat "$0.out"\n')
        programs[name].chmod(0o755)
        (tmp_path / f"{name}.out").touch()
    return KindCluster(programs)


def test_images_are_loaded_once_and_only_into_nodes_that_take_pods(cluster: KindCluster, tmp_path: Path) -> None:
    cluster.nodes = ("worker", "worker2")
    for _ in range(2):
        assert cluster.load(IMAGES["operator"]) == "dtjob-operator:dev"
    archive = IMAGES["operator"].archive
    assert (tmp_path / "kind.calls").read_text() == (
        f"load image-archive {archive} --name dtjob-e2e --nodes worker,worker2\n"
    )


def test_the_cluster_says_whether_its_network_enforces_policies(cluster: KindCluster, tmp_path: Path) -> None:
    cluster.nodes = ("worker", "worker2")
    with cluster.network_policies() as node:
        assert node == "worker"
    (tmp_path / "kubectl.out").write_text("daemonset.apps/kindnet\n")
    with pytest.raises(UnsupportedError):
        cluster.network_policies()


def test_a_worker_that_is_still_tainted_is_waited_for(cluster: KindCluster, tmp_path: Path) -> None:
    """Else images would be loaded into the other workers only."""

    def node(name: str, *taints: str) -> dict[str, object]:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        return {"metadata": {"name": name}, "spec": {"taints": [{"effect": one} for one in taints]}, "status": ready}

    control = node("control", "NoSchedule")
    for number, taints in enumerate((["NoSchedule"], [])):
        items = [control, node("worker"), node("worker2", *taints)]
        (tmp_path / f"{number}.json").write_text(json.dumps({"items": items}))
    kubectl = tmp_path / "kubectl"  # says of worker2 that it is tainted, once
    kubectl.write_text('#!/bin/sh\ncd "$(dirname "$0")" && cat 0.json && cp 1.json 0.json\n')
    assert cluster.wait_for_workers() == ("worker", "worker2")
