# SPDX-License-Identifier: Apache-2.0
"""What a job's events say of its pods, and that what dtjob writes bears its name."""

from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api


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
