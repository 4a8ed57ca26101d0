# SPDX-License-Identifier: Apache-2.0
"""What `dtjob doctor` and `dtjob version` say of clusters."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dtjob import __version__
from dtjob.cli.doctor import look_at_all
from dtjob.client.cluster import Cluster, connect
from dtjob.crd.definition import crd
from tests.unit.operator.client.api_server import ApiServer, Fault

DEPLOYMENTS = "GET /apis/apps/v1/deployments"
NOW = datetime(2026, 11, 23, 12, 0, 5, tzinfo=UTC)
DEFINITION = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/distributedtrainingjobs.training.dtjob.dev"
LEASE = "GET /apis/coordination.k8s.io/v1/namespaces/dtjob-system/leases/dtjob"


def deployment(ready: int = 1) -> dict[str, Any]:
    container = {"args": ["operator", "--leader-election", "--default-image", "registry.example/trainer:1"]}
    return {
        "metadata": {"namespace": "dtjob-system", "name": "dtjob"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
        "status": {"readyReplicas": ready},
    }


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Cluster:
    """One in which all is well."""
    node = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"nvidia.com/gpu": "4"}}}
    node["status"]["images"] = [{"names": ["registry.example/trainer:1"]}]
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    server.answer("GET /version", {"gitVersion": "v1.36.0"})
    server.answer("GET /apis/training.dtjob.dev/v1beta1", {})
    server.answer(DEFINITION, crd())
    server.answer("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"status": {"allowed": True}})
    server.answer(DEPLOYMENTS, {"items": [deployment()]})
    server.answer(LEASE, {"spec": {"holderIdentity": "pod-1", "renewTime": "2026-11-23T12:00:00.000000Z"}})
    server.answer("GET /api/v1/nodes", {"items": [node]})
    server.answer(
        "GET /apis/storage.k8s.io/v1/storageclasses",
        {"items": [{"metadata": {"name": "standard", "annotations": default}}]},
    )
    server.answer("GET /apis", {"groups": [{"name": "kueue.x-k8s.io", "versions": [{"version": "v1beta2"}]}]})
    return connect(str(server.kubeconfig(tmp_path)))


def found(cluster: Cluster) -> dict[str, str]:
    return {one.what: str(one) for one in look_at_all(cluster, NOW)}


def test_doctor_says_ok_for_every_check_of_a_healthy_cluster(cluster: Cluster) -> None:
    lines = found(cluster)
    assert {line.split(" ")[0] for line in lines.values()} == {"ok"}
    assert "1 of 1 are ready, with 4 GPUs" in lines["nodes"]
    assert "pod-1 holds the Lease" in lines["leader"]
    assert lines["queues and gangs"].endswith("Kueue")


@pytest.mark.parametrize(
    ("request_", "answer", "what", "said"),
    [
        (DEPLOYMENTS, {"items": []}, "operator", "install the operator with helm"),
        (DEPLOYMENTS, {"items": [deployment(0)]}, "operator", "0 of 1 pods ready. Look at kubectl"),
        (LEASE, {"spec": {"renewTime": "2026-11-23T11:00:00Z"}}, "leader", "nobody holds the Lease"),
        ("GET /api/v1/nodes", {"items": [{"status": {}}]}, "nodes", "none of 1 nodes is ready"),
        (
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"status": {"allowed": False}},
            "rights",
            "you may not create distributedtrainingjobs (to submit jobs)",
        ),
        ("GET /apis/training.dtjob.dev/v1beta1", Fault(404), "definition", ""),
    ],
)
def test_each_problem_has_its_remedy(
    server: ApiServer, cluster: Cluster, request_: str, answer: Any, what: str, said: str
) -> None:
    server.answer(request_, answer)
    line = found(cluster)[what]
    assert line.startswith("problem ")
    assert said in line or said.capitalize() in line


def test_a_definition_of_another_version_is_noted(server: ApiServer, cluster: Cluster) -> None:
    other = crd()
    spec = other["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["suspend"]
    server.answer(DEFINITION, other)
    assert "which lacks suspend" in found(cluster)["definition"]


def test_checks_that_an_editor_may_not_make_are_named(server: ApiServer, cluster: Cluster) -> None:
    for request_ in (DEFINITION, DEPLOYMENTS, "GET /api/v1/nodes"):
        server.answer(request_, {"message": "forbidden"}, code=403)
    lines = found(cluster)
    assert [what for what, line in lines.items() if line.startswith("not seen")] == ["definition", "operator", "nodes"]


OPERATOR = {"metadata": {"labels": {"app.kubernetes.io/version": "0.3.0"}}}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"items": [OPERATOR]}, "operator 0.3.0"),
        ({"items": [OPERATOR, {"metadata": {"labels": {}}}]}, "operator 0.3.0, unknown"),
        ({"items": []}, "operator: the cluster has none"),
        (Fault(403), "operator: you may not look at it"),
    ],
)
def test_the_version_of_each_operator_is_shown(
    dtjob: Any, server: ApiServer, tmp_path: Path, answer: Any, said: str
) -> None:
    server.answer(DEPLOYMENTS, answer)
    shown = dtjob("version", "--kubeconfig", server.kubeconfig(tmp_path))
    assert shown == (0, f"dtjob {__version__}\n{said}\n", "")


def test_without_a_cluster_the_version_is_shown_all_the_same(
    dtjob: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    code, out, err = dtjob("version")
    assert (code, out) == (0, f"dtjob {__version__}\n")
    assert err.startswith("operator: ")
