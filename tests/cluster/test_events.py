# SPDX-License-Identifier: Apache-2.0
"""What a job's events say of its pods, and that what dtjob writes bears its name."""

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

THREE = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")


def test_objects_that_dtjob_writes_have_the_field_manager_dtjob(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    auto_kubelet.exit("digits-worker-0-0", 1)
    wait_pods(api, namespace, "digits-chief-0-0", "digits-worker-0-1", "digits-worker-1-0")
    wait_phase(api, namespace, "Running")
    api.patch("networkpolicies", namespace, "digits", {"spec": {"ingress": [{}]}})
    api.wait("events", namespace, lambda found: any(one["reason"] == "Repaired" for one in found.values()))
    for kind in ("pods", "services", "configmaps", "networkpolicies", "events", "dtjobs"):
        for one in api.list(kind, namespace):
            if one["metadata"]["name"].startswith("digits"):
                managers = {entry["manager"] for entry in one["metadata"]["managedFields"]}
                assert "dtjob" in managers, f"{kind} {one['metadata']['name']}: {managers}"
                assert not {name for name in managers if "aiohttp" in name.lower()}, managers


@pytest.mark.parametrize("workers", [2, 40])
def test_events_tell_of_all_pods_at_once(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet, kubectl: Kubectl, workers: int
) -> None:
    manifest = job(program=False)
    manifest["spec"]["replicaSpecs"]["worker"]["replicas"] = workers
    api.create("dtjobs", namespace, manifest)
    wait_phase(api, namespace, "Running")
    auto_kubelet.exit("digits-worker-0-0", 1)  # which takes the group along
    wait_pods(api, namespace, "digits-chief-0-1", *(f"digits-worker-{index}-1" for index in range(workers)))
    pods = workers + 1

    def told(events: dict[str, Object]) -> dict[str, list[str]]:
        made: dict[str, list[str]] = {}
        for one in sorted(events.values(), key=lambda one: one["metadata"]["creationTimestamp"]):
            if one["involvedObject"]["kind"] == "DistributedTrainingJob":
                made.setdefault(one["reason"], []).append(one["message"])
        return made

    events = told(api.wait("events", namespace, lambda found: len(told(found).get("SuccessfulCreate", ())) == 3))
    begun = next(text for text in events["SuccessfulCreate"] if str(pods) in text)
    again, chief = sorted(set(events["SuccessfulCreate"]) - {begun}, key=len, reverse=True)
    assert begun.startswith(f"Created {pods} pods: digits-chief-0-0, digits-worker-0-0, digits-worker-1-0")
    assert again.startswith(f"Created {pods - 1} pods: digits-worker-0-1, digits-worker-1-1")
    assert chief == "Created pod: digits-chief-0-1"  # its earlier one had to end first
    (deleted,) = events["SuccessfulDelete"]
    assert deleted.startswith(f"Deleted {pods} pods: digits-chief-0-0")
    assert f"Created {pods} pods" in kubectl("describe", "dtjob", "digits").stdout


def test_a_quota_is_said_once_for_all_pods(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet, kubectl: Kubectl
) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    api.create("resourcequotas", namespace, quota)
    api.wait_for("resourcequotas", namespace, "none", lambda one: one and (one.get("status") or {}).get("hard"))
    api.create("dtjobs", namespace, job())

    def failed(events: dict[str, Object]) -> list[Object]:
        return [one for one in events.values() if one["reason"] == "FailedCreate"]

    events = failed(api.wait("events", namespace, failed))
    assert all("exceeded quota: none" in one["message"] for one in events)
    assert sum(one["count"] for one in events) < 3
    api.delete("resourcequotas", namespace, "none")
    wait_pods(api, namespace, *THREE)
