# SPDX-License-Identifier: Apache-2.0
"""PodGroups that are not there: of an API that the cluster has not (which may come: `make integrations`), one that
somebody deleted or changed, and one that is left behind while the operator is away. This API server has Kubernetes' own
feature off, as it is by default."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support.chart import says, wait_until
from tests.cluster.support.gangs import APIS, COSCHEDULING, VOLCANO, gang_job, group_of, serve
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api


def test_a_cluster_without_the_api_says_what_to_turn_on(
    operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl
) -> None:
    api.create("dtjobs", namespace, gang_job(namespace, "Kubernetes"))
    missing = "serves no PodGroups of scheduling.k8s.io: kube-apiserver needs --feature-gates=GenericWorkload=true"
    job = api.wait_for("dtjobs", namespace, "digits", says(missing))
    assert job is not None
    assert (job["status"]["phase"], job["status"]["reason"]) == ("Pending", "CannotCreate")
    assert "or set spec.scheduling.gang.provider to what the cluster has" in job["status"]["message"]
    assert api.list("pods", namespace) == []
    assert missing in kubectl("describe", "dtjob", "digits").stdout


@pytest.fixture(scope="module")
def others(cluster: ControlPlane) -> Iterator[None]:
    """Volcano's and scheduler-plugins' definitions."""
    names = [serve(cluster, file.read_text()) for file in (VOLCANO, COSCHEDULING)]
    yield
    cluster.kubectl("delete", "crd", *names)


@pytest.mark.resync_seconds(1.0)
def test_a_deleted_pod_group_is_created_again_and_a_changed_one_is_repaired(
    others: None, operator: OperatorProcess, api: Api, namespace: str
) -> None:
    api.create("dtjobs", namespace, gang_job(namespace, "Volcano", gang={"volcano": {"queue": "team-a"}}))
    api.wait("pods", namespace, lambda pods: len(pods) == 4)
    path = f"apis/{APIS['Volcano']}/namespaces/{namespace}/podgroups/digits"
    before = api.call("GET", path)
    assert before["spec"]["queue"] == "team-a"
    wrong = {**before, "spec": {**before["spec"], "minMember": 1, "networkTopology": {"mode": "soft"}}}
    api.call("PUT", path, wrong)
    wait_until(lambda: api.call("GET", path)["spec"]["minMember"] == 4, "minMember is right again")
    assert api.call("GET", path)["spec"]["networkTopology"] == {"mode": "soft"}
    api.call("DELETE", path)
    wait_until(lambda: group_of(api, namespace, "Volcano") is not None, "it is made again")
    after = api.call("GET", path)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
