# SPDX-License-Identifier: Apache-2.0
"""The chart's rights for queued jobs: all that the operator needs, and nothing more."""

import json

import pytest

from tests.cluster.support import kueue
from tests.cluster.support.chart import (
    AuditedControlPlane,
    Helm,
    InstalledOperator,
    granted,
    install,
    says,
)
from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tools.cluster.rest import Api, Object

QUEUE = "kueue.x-k8s.io/queue-name"
GROUPS = ("kueue.x-k8s.io", "scheduling.k8s.io")


@pytest.fixture(scope="module")
def cluster(audited_cluster: AuditedControlPlane) -> AuditedControlPlane:
    return audited_cluster


@pytest.fixture(scope="module")
def api(cluster: AuditedControlPlane) -> Api:
    return Api(cluster.kubeconfig)


def _inside(found: Object, namespace: str) -> Object:
    """The object's metadata in this namespace, which an object of the cluster's own has none of."""
    there = {"namespace": namespace} if "namespace" in found["metadata"] else {}
    return {"metadata": {**found["metadata"], **there}}


def test_queued_jobs_need_the_rights_that_kueue_enabled_gives(
    helm: Helm, cluster: AuditedControlPlane, api: Api, installed: InstalledOperator, namespace: str, kubelet: Kubelet
) -> None:
    install(helm, api)
    kueue.install(api)
    try:
        installed.start()
        queued = job(strategy="Default")
        queued["metadata"]["labels"] = {QUEUE: "team-a", "kueue.x-k8s.io/priority-class": "high"}
        api.create("dtjobs", namespace, queued)
        api.wait_for("dtjobs", namespace, "digits", says("kueue.enabled"))  # it is there, and may not be seen
        assert installed.terminate() == 0

        cluster.forget_calls()
        install(helm, api, "kueue.enabled=true", verb="upgrade")
        api.create("resourceflavors", None, kueue.flavour("spot", {"pool": "spot"}))
        api.create("workloadpriorityclasses", None, kueue.priority_class("high", 1000))
        installed.start()
        controller = kueue.Controller(api, namespace)
        controller.admit({"cpu": "spot"})
        wait_pods(api, namespace, "digits-chief-0-0")
        kubelet.run("digits-chief-0-0")
        wait_phase(api, namespace, "Running")
        made = controller.workload()
        api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": True}})
        api.wait("workloads", namespace, lambda found: not found)

        theirs = {"metadata": {"name": "theirs"}, "spec": made["spec"]}
        api.create("workloads", namespace, {**theirs, "apiVersion": made["apiVersion"], "kind": "Workload"})
        adopts = job("adopts", "Default", scheduling={"priorityClassName": "none"})
        adopts["metadata"]["labels"] = {QUEUE: "team-a", "kueue.x-k8s.io/prebuilt-workload-name": "theirs"}
        api.create("dtjobs", namespace, adopts)
        controller.workload(lambda one: one["metadata"].get("ownerReferences"))
        for one in ("ClusterQueue", "LocalQueue"):
            found = kueue.on_the_page()[one]
            api.create(f"{one.lower()}s", namespace if one == "LocalQueue" else None, found | _inside(found, namespace))
        near = {"priorityClassName": "none", "topology": {"required": "example.com/rack"}}
        poor = job("poor", scheduling=near)
        poor["metadata"]["labels"] = {QUEUE: "team-a"}
        api.create("dtjobs", namespace, poor)
        api.wait_for("dtjobs", namespace, "poor", says("there is no PriorityClass none"))

        calls = set(cluster.calls())
        assert not [call for call in calls if not call[3]], json.dumps(sorted(calls))
        of_kueue = {right for right in granted(cluster) if right[0] in GROUPS and right[1] != "podgroups"}
        assert of_kueue == {call[:3] for call in calls if call[0] in GROUPS}
        assert installed.terminate() == 0
    finally:
        kueue.uninstall(api)
