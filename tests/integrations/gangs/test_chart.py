# SPDX-License-Identifier: Apache-2.0
"""The chart's rights to PodGroups just suffice: an installed operator makes, lists, watches, repairs and
deletes them."""

from collections.abc import Iterator

import pytest

from tests.cluster.support.chart import AuditedControlPlane, Helm, InstalledOperator, granted, install, wait_until
from tests.cluster.support.gangs import APIS, COSCHEDULING, gang_job, group_of, wait_until_gone
from tests.cluster.support.jobs import all_created, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tools.cluster.rest import Api

PROVIDER = "Coscheduling"
GROUP = "scheduling.x-k8s.io"


@pytest.fixture(scope="module")
def cluster(audited_cluster: AuditedControlPlane) -> Iterator[AuditedControlPlane]:
    audited_cluster.kubectl("apply", "-f", str(COSCHEDULING))
    audited_cluster.kubectl("wait", "--for=condition=Established", f"crd/podgroups.{GROUP}", "--timeout=60s")
    yield audited_cluster
    audited_cluster.kubectl("delete", "-f", str(COSCHEDULING))


@pytest.fixture(scope="module")
def api(cluster: AuditedControlPlane) -> Api:
    return Api(cluster.kubeconfig)


def test_each_right_to_pod_groups_is_used_and_none_is_missing(
    helm: Helm, cluster: AuditedControlPlane, api: Api, installed: InstalledOperator, namespace: str, kubelet: Kubelet
) -> None:
    install(helm, api, "operator.resyncSeconds=1", f"gangs.providers={{{PROVIDER}}}")
    installed.start()
    installed.wait_log("is watching")  # a job made while a new definition is being taken in was not seen in 2 of 4 runs
    cluster.forget_calls()
    api.create("dtjobs", namespace, gang_job(namespace, PROVIDER))
    api.wait_for(
        "dtjobs",
        namespace,
        "digits",
        all_created,
        timeout=120,
    )
    watch = (GROUP, "podgroups", "watch", True)
    wait_until(lambda: watch in set(cluster.calls()), "the resync has found the job and PodGroups are watched")
    path = f"apis/{APIS[PROVIDER]}/namespaces/{namespace}/podgroups/digits"
    api.call("PUT", path, {**(made := api.call("GET", path)), "spec": {**made["spec"], "minMember": 1}})
    wait_until(lambda: api.call("GET", path)["spec"]["minMember"] == 4, "minMember is right again")
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": True}})
    wait_phase(api, namespace, "Suspended")
    wait_until_gone(api, namespace, PROVIDER)
    assert group_of(api, namespace, PROVIDER) is None
    assert installed.terminate() == 0
    calls = {call for call in cluster.calls() if call[1] == "podgroups"}
    assert not [call for call in calls if not call[3]]
    allowed = {right for right in granted(cluster) if right[1] == "podgroups"}
    assert allowed == {call[:3] for call in calls}
    assert {group for group, _, _ in allowed} == {GROUP}


def test_without_the_right_the_job_says_so(
    helm: Helm, cluster: AuditedControlPlane, api: Api, installed: InstalledOperator, namespace: str
) -> None:
    install(helm, api, "gangs.providers={Kubernetes}")
    installed.start()
    api.create("dtjobs", namespace, gang_job(namespace, PROVIDER))
    found = api.wait_for(
        "dtjobs", namespace, "digits", lambda job: job and "podgroups" in job.get("status", {}).get("message", "")
    )
    assert found is not None
    assert "gangs.providers" in found["status"]["message"]
    assert api.list("pods", namespace) == []
