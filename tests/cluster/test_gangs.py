# SPDX-License-Identifier: Apache-2.0
"""PodGroups on a real API server, by the definitions that Volcano and scheduler-plugins ship: made, and given up."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support.gangs import COSCHEDULING, MEMBERS, VOLCANO, gang_job, group_of, serve, wait_until_gone
from tests.cluster.support.jobs import wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

FOUR = {f"digits-{one}-0" for one in ("chief-0", "worker-0", "worker-1", "worker-2")}


@pytest.fixture(scope="module")
def others(cluster: ControlPlane) -> Iterator[None]:
    """Volcano's and scheduler-plugins' definitions."""
    names = [serve(cluster, file.read_text()) for file in (VOLCANO, COSCHEDULING)]
    yield
    cluster.kubectl("delete", "crd", *names)


@pytest.mark.parametrize(("provider", "field"), [("Volcano", "minMember"), ("Coscheduling", "minMember")])
def test_a_pod_group_is_created_deleted_for_a_suspension_and_deleted_at_the_end(
    others: None,
    shared_operator: OperatorProcess,
    api: Api,
    namespace: str,
    kubelet: Kubelet,
    kubectl: Kubectl,
    provider: str,
    field: str,
) -> None:
    kubectl("create", "-f", "-", stdin=json.dumps(gang_job(namespace, provider, evaluator=True)))
    pods = api.wait("pods", namespace, lambda pods: set(pods) == FOUR)
    kubelet.run("digits-chief-0-0")
    pods = api.wait("pods", namespace, lambda pods: len(pods) == 5)  # the evaluator comes to the chief's node
    assert {name for name, pod in pods.items() if MEMBERS[provider](pod)} == FOUR
    made = group_of(api, namespace, provider)
    assert made is not None
    assert made["spec"][field] == 4
    assert made["metadata"]["creationTimestamp"] <= min(pod["metadata"]["creationTimestamp"] for pod in pods.values())
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["name"], owner["controller"]) == ("digits", True)
    status = api.get("dtjobs", namespace, "digits")["status"]
    assert status["gang"] == {"provider": provider, "minAvailable": 4}
    if provider == "Volcano":
        assert made["spec"]["minResources"] == {"cpu": "4"}
    for name in pods:
        kubelet.run(name)
    wait_phase(api, namespace, "Running")
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": True}})
    wait_until_gone(api, namespace, provider)
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": False}})
    api.wait("pods", namespace, lambda pods: {f"{name[:-1]}1" for name in FOUR} <= set(pods))
    assert group_of(api, namespace, provider) is not None
    kubelet.run("digits-chief-0-1")
    for name in api.wait("pods", namespace, lambda pods: len([one for one in pods if one.endswith("-1")]) == 5):
        if name.endswith("-1"):
            kubelet.run(name)
    kubelet.succeed("digits-chief-0-1")
    wait_phase(api, namespace, "Succeeded")
    wait_until_gone(api, namespace, provider)
