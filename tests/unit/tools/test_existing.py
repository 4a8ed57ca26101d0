# SPDX-License-Identifier: Apache-2.0
"""What is taken from the environment and asked of a cluster that is there already."""

from pathlib import Path
from typing import Any

import pytest

from tools.cluster import existing
from tools.cluster.cluster import UnsupportedError
from tools.cluster.existing import ExistingCluster
from tools.cluster.rest import Object
from tools.images import IMAGES
from tools.node import packages


def cluster(**environment: str) -> ExistingCluster:
    return ExistingCluster(Path("kubectl"), {"DTJOB_KUBECONFIG": "/nowhere/kubeconfig", **environment})


def node(name: str, ready: str = "True", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


def test_only_nodes_that_take_any_pod_count() -> None:
    nodes = [
        node("plane", taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]),
        node("drained", unschedulable=True),
        node("lost", ready="Unknown"),
        node("b", taints=[{"key": "slow", "effect": "PreferNoSchedule"}]),
        node("a"),
    ]
    assert existing.schedulable(nodes) == ("a", "b")


def test_an_image_that_is_named_is_taken_as_it_is() -> None:
    named = cluster(DTJOB_E2E_TRAINER_IMAGE="mirror.example/trainer:7")
    assert named.load(IMAGES["trainer"]) == "mirror.example/trainer:7"
    with pytest.raises(UnsupportedError, match="DTJOB_E2E_OPERATOR_IMAGE or DTJOB_E2E_LOAD"):
        named.load(IMAGES["operator"])


def test_an_archive_is_loaded_once_by_the_users_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "with a space"))
    mark = tmp_path / "mark"
    loading = cluster(DTJOB_E2E_LOAD=f"echo {{archive}} >>{mark}")
    assert [loading.load(IMAGES["trainer"]) for _ in range(2)] == ["dtjob-trainer:dev"] * 2
    assert mark.read_text() == f"{IMAGES['trainer'].archive}\n"
    with pytest.raises(AssertionError, match="DTJOB_E2E_LOAD: exit 3"):
        cluster(DTJOB_E2E_LOAD="exit 3").load(IMAGES["trainer"])


def test_claims_are_of_the_default_class_or_of_the_one_named() -> None:
    once = existing.claim("here", "data", False, None)["spec"]
    assert (once["accessModes"], "storageClassName" in once) == (["ReadWriteOnce"], False)
    shared = existing.claim("here", "data", True, "nfs")["spec"]
    assert (shared["accessModes"], shared["storageClassName"]) == (["ReadWriteMany"], "nfs")
    with pytest.raises(UnsupportedError, match="set DTJOB_E2E_SHARED_STORAGE_CLASS"):
        cluster().claim("here", "data", shared=True)
    default: Object = {"metadata": {"annotations": {existing.DEFAULT_CLASS: "true"}}}
    assert existing.has_default([{"metadata": {}}, default])
    assert not existing.has_default([{"metadata": {"annotations": {existing.DEFAULT_CLASS: "false"}}}])


def test_an_action_that_an_existing_cluster_cannot_do_is_an_error() -> None:
    for attempt in (cluster().stop_kubelet, cluster().start_kubelet):
        with pytest.raises(UnsupportedError, match="not ours"):
            attempt("node")
    with pytest.raises(UnsupportedError, match="nobody outside"):
        cluster().kill_container({}, "tensorflow")


def test_policies_are_enforced_where_the_user_says_so() -> None:
    assert not cluster().enforces_network_policies
    assert cluster(DTJOB_E2E_NETWORK_POLICIES="enforced").enforces_network_policies


def test_a_kubeconfig_that_is_not_there_is_named() -> None:
    with pytest.raises(packages.UnavailableError, match="DTJOB_KUBECONFIG names /nowhere/kubeconfig"):
        cluster().start()
