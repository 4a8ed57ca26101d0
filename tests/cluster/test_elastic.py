# SPDX-License-Identifier: Apache-2.0
"""Elastic workers against a real API server: kubectl scale, no room, and room again."""

import json
from typing import Any

import pytest

from dtjob.api.job import API_VERSION, PLURAL
from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import all_created, columns, job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.refusals.elastic import ELASTIC_BEFORE, ELASTIC_CHANGES, ELASTIC_CHANGES_TAKEN
from tests.refusals.manifests import Bad
from tools.cluster.rest import Api, ApiError, Object

REASONS = ("Resizing", "Resized")


def elastic(replicas: int = 2, strategy: str = "MultiWorkerMirrored", **spec: Any) -> Object:
    """A job with so many workers, which may be 1 to 6."""
    roles: Object = {"chief": {}, "worker": {"replicas": replicas}}
    roles |= {"ps": {}} if strategy == "ParameterServer" else {}
    return job(strategy=strategy, replicaSpecs=roles, elasticPolicy={"minReplicas": 1, "maxReplicas": 6}, **spec)


def group(attempt: int, workers: int, *more: str) -> set[str]:
    """The pods of a group."""
    ids = ["chief-0", *(f"worker-{index}" for index in range(workers)), *more]
    return {f"digits-{id_}-{attempt}" for id_ in ids}


def wait_for_group(api: Api, namespace: str, names: set[str]) -> dict[str, Object]:
    """Wait until there are these pods and no others."""
    return api.wait("pods", namespace, lambda pods: set(pods) == names)


def run_all(kubelet: Kubelet, api: Api, namespace: str, *names: str) -> Object:
    for name in names:
        kubelet.run(name)
    found = api.wait_for("dtjobs", namespace, "digits", settled)
    assert found is not None
    return found


def settled(found: Object | None) -> bool:
    status = (found or {}).get("status", {})
    return bool(status.get("phase") == "Running" and all_created(found))


def workers_are(**wanted: Any) -> Any:
    """A condition for `Api.wait_for` on a job."""
    return lambda found: bool(found) and wanted.items() <= (found.get("status", {}).get("workers") or {}).items()


def cluster_spec(api: Api, namespace: str, pod: Object) -> dict[str, list[str]]:
    """What the pod's ConfigMap says."""
    volume = next(one for one in pod["spec"]["volumes"] if one["name"] == "dtjob-cluster")
    found: dict[str, list[str]] = json.loads(
        api.get("configmaps", namespace, volume["configMap"]["name"])["data"]["cluster.json"]
    )
    return found


@pytest.mark.parametrize("strategy", ["MultiWorkerMirrored", "ParameterServer"])
def test_kubectl_scale_makes_a_new_group_that_goes_on(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet, strategy: str
) -> None:
    ps = ("ps-0",) if strategy == "ParameterServer" else ()
    api.create(
        "dtjobs",
        namespace,
        elastic(2, strategy, failurePolicy={"maxRestartsWithoutProgress": 0, "maxDisruptionsWithoutProgress": 0}),
    )
    first = group(0, 2, *ps)
    wait_for_group(api, namespace, first)
    run_all(kubelet, api, namespace, *first)
    scale = json.loads(kubectl("get", "dtjob/digits", "--subresource=scale", "-o", "json").stdout)
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)
    selected = json.loads(kubectl("get", "pods", f"--selector={scale['status']['selector']}", "-o", "json").stdout)
    assert len(selected["items"]) == 2

    kubelet.hang("digits-worker-1-0")  # it saves
    assert "scaled" in kubectl("scale", "dtjob/digits", "--replicas=1").stdout
    api.wait("pods", namespace, lambda pods: set(pods) == {"digits-worker-1-0"})
    found = api.wait_for("dtjobs", namespace, "digits", lambda one: one and one["status"]["reason"] == "Resizing")
    assert found is not None
    assert found["status"]["workers"]["resizing"]["to"] == 1
    kubelet.release()
    smaller = group(1, 1, *ps)
    pods = wait_for_group(api, namespace, smaller)
    assert len(cluster_spec(api, namespace, pods["digits-worker-0-1"])["worker"]) == 1
    run_all(kubelet, api, namespace, *smaller)

    kubectl("scale", "dtjob/digits", "--replicas=6")
    placeholders = {f"digits-worker-{index}-placeholder" for index in range(1, 6)}
    pods = wait_for_group(api, namespace, smaller | placeholders)
    assert wait_phase(api, namespace, "Running")["status"]["workers"]["reason"] == "NoRoom"
    for name in placeholders:
        kubelet.run(name)
    larger = group(2, 6, *ps)
    pods = wait_for_group(api, namespace, larger)
    assert len(cluster_spec(api, namespace, pods["digits-chief-0-2"])["worker"]) == 6
    status = run_all(kubelet, api, namespace, *larger)["status"]
    assert columns(kubectl, "-o", "wide")["WORKERS"] == "6"
    assert (status["workers"]["desired"], status["workers"]["replicas"]) == (6, 6)
    assert status["restarts"]["total"] == 0
    events = api.wait("events", namespace, lambda _: len(told(api, namespace)) == 4)
    assert events
    assert sorted(told(api, namespace)) == sorted(REASONS * 2)


def told(api: Api, namespace: str) -> list[str]:
    return [one["reason"] for one in api.list("events", namespace) if one["reason"] in REASONS]


def test_scale_says_how_many_workers_a_job_has_that_is_not_elastic(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl
) -> None:
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Pending")
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}/digits/scale"
    scale: Object = json.loads(kubectl("get", "--raw", path).stdout)
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)
    assert "training.dtjob.dev/role=worker" in scale["status"]["selector"]


def test_only_elastic_workers_can_be_scaled(api: Api, namespace: str, kubectl: Kubectl) -> None:
    api.create("dtjobs", namespace, job("fixed"))
    api.create("dtjobs", namespace, job("alone", "Default"))
    api.create("dtjobs", namespace, {**elastic(2), "metadata": {"name": "elastic"}})
    for name, replicas, said in (
        ("fixed", 3, "worker.replicas can only if elasticPolicy is set"),
        ("alone", 3, "replicaSpecs cannot be changed"),
        ("elastic", 7, "replicas is above elasticPolicy.maxReplicas"),
        ("elastic", 0, "should be greater than or equal to 1"),
    ):
        done = kubectl("scale", f"dtjob/{name}", f"--replicas={replicas}", check=False)
        assert done.returncode == 1, name
        assert said in done.stderr, name
    assert "scaled" in kubectl("scale", "dtjob/elastic", "--replicas=6").stdout


@pytest.mark.parametrize("row", ELASTIC_CHANGES, ids=[row.name for row in ELASTIC_CHANGES])
def test_bad_changes_of_an_elastic_job_are_refused(api: Api, namespace: str, row: Bad) -> None:
    api.create("dtjobs", namespace, THEIRS)
    with pytest.raises(ApiError) as refusal:
        change(api, namespace, row.manifest)
    for part in row.says:
        assert part in refusal.value.message


def test_the_number_of_elastic_workers_may_change(api: Api, namespace: str) -> None:
    api.create("dtjobs", namespace, THEIRS)
    for manifest in ELASTIC_CHANGES_TAKEN.values():
        change(api, namespace, manifest)


MANAGER = {"managedBy": "kueue.x-k8s.io/multikueue"}
THEIRS = {**ELASTIC_BEFORE, "spec": {**ELASTIC_BEFORE["spec"], **MANAGER}}
"""No operator writes its status meanwhile."""


def change(api: Api, namespace: str, manifest: Object) -> None:
    existing = api.get("dtjobs", namespace, "digits")
    meta = {**manifest["metadata"], "resourceVersion": existing["metadata"]["resourceVersion"]}
    whole = {**manifest, "metadata": meta, "spec": {**manifest["spec"], **MANAGER}}
    api.replace("dtjobs", namespace, whole, dryRun="All", fieldValidation="Strict")
