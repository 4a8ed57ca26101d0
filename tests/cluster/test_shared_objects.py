# SPDX-License-Identifier: Apache-2.0
"""A job's Service, ConfigMap and NetworkPolicy stay as dtjob says, against a real API server: whoever deletes or edits
them, and whichever release of dtjob made them. Resync is three minutes away in all of these tests."""

from collections.abc import Callable

import pytest

from dtjob.api.job import Job
from dtjob.controller.cluster import Refused
from dtjob.kube.calls.client import connect
from dtjob.objects import shared
from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.support.shared_objects import FOREIGN, spec_of, wait_spec
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, Object

THREE = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")
OPEN_TO_ALL: Object = {"spec": {"ingress": [{}]}}


def config_map_of(api: Api, namespace: str) -> str:
    stored = Job.model_validate(api.get("dtjobs", namespace, "digits"))
    return shared.config_map_name(stored)


def other_uid(old: str) -> Callable[[Object | None], bool]:
    return lambda found: found is not None and found["metadata"]["uid"] != old


def deleted_and_made_again(api: Api, kind: str, namespace: str, name: str) -> None:
    uid = api.get(kind, namespace, name)["metadata"]["uid"]
    api.delete(kind, namespace, name)
    api.wait_for(kind, namespace, name, other_uid(uid))


def test_deleted_shared_objects_are_created_again_at_once(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job())
    wait_pods(api, namespace, *THREE)
    config_map = config_map_of(api, namespace)
    uid = api.get("configmaps", namespace, config_map)["metadata"]["uid"]
    api.delete("configmaps", namespace, config_map)
    kubelet.wait(THREE[-1], "ContainerCreating", "")  # on its node, for the ConfigMap
    for kind in ("services", "networkpolicies"):
        deleted_and_made_again(api, kind, namespace, "digits")
    told = [f"{kind} digits was missing and has been created again" for kind in ("Service", "NetworkPolicy")]
    api.wait("events", namespace, lambda found: set(told) <= {one["message"] for one in found.values()})
    for pod in THREE[:-1]:
        kubelet.run(pod)
    api.wait_for("dtjobs", namespace, "digits", lambda found: found and found["status"]["ready"] == "2/3")
    api.wait_for("configmaps", namespace, config_map, other_uid(uid))
    kubelet.run(THREE[-1])
    assert wait_phase(api, namespace, "Running")["status"]["restarts"]["total"] == 0
    for kind in ("services", "networkpolicies"):
        deleted_and_made_again(api, kind, namespace, "digits")


def test_a_network_policy_that_was_opened_is_repaired(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet, kubectl: Kubectl
) -> None:
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    closed = spec_of(api, "networkpolicies", namespace)
    for opened in (
        OPEN_TO_ALL,
        {"spec": {"ingress": [*closed["ingress"], {"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]}},
        {"spec": {"podSelector": {"matchLabels": {"no": "pod"}}}},
        {"spec": {"policyTypes": ["Egress"]}},
    ):
        api.patch("networkpolicies", namespace, "digits", opened)
        wait_spec(api, "networkpolicies", namespace, closed)

    def told(events: dict[str, Object]) -> list[Object]:
        return [one for one in events.values() if one["reason"] == "Repaired" and "spec.ingress" in one["message"]]

    # The second time is the same event, counted.
    events = api.wait("events", namespace, lambda found: [one["count"] for one in told(found)] == [2])
    assert told(events)[0]["involvedObject"]["name"] == "digits"
    assert "NetworkPolicy digits differed in spec.ingress" in kubectl("describe", "dtjob", "digits").stdout


def test_a_service_that_somebody_redirected_is_repaired(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    right = spec_of(api, "services", namespace)
    ports = [{**right["ports"][0], "port": 3333, "targetPort": 3333}, right["ports"][1]]
    for wrong in (
        {"spec": {"selector": {"other": "pods"}}},
        {"spec": {"publishNotReadyAddresses": False}},
        {"spec": {"ports": ports}},
        {"spec": {"type": "ExternalName", "externalName": "elsewhere.example.com", "clusterIP": None}},
    ):
        api.patch("services", namespace, "digits", wrong)
        api.wait_for(
            "services",
            namespace,
            "digits",
            lambda one: one and {k: v for k, v in one["spec"].items() if k != "externalName"} == right,
        )


def test_our_labels_come_back_and_others_stay(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """Without the job's name on it an object is not even watched."""
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    for kind in ("services", "networkpolicies"):
        before = api.get(kind, namespace, "digits")["metadata"]
        api.patch(kind, namespace, "digits", FOREIGN)
        for _ in range(2):
            api.patch(kind, namespace, "digits", {"metadata": {"labels": {"training.dtjob.dev/job-name": None}}})
            found = api.wait_for(
                kind,
                namespace,
                "digits",
                lambda one, before=before: one and before["labels"].items() <= one["metadata"]["labels"].items(),
            )
            assert found is not None
            assert found["metadata"]["uid"] == before["uid"]
            assert found["metadata"]["labels"] == before["labels"] | FOREIGN["metadata"]["labels"]
            assert found["metadata"]["annotations"] == FOREIGN["metadata"]["annotations"]


def test_a_suspended_job_creates_no_shared_objects(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """They stay where it has run, and come back with its pods where they do not."""
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": True}})
    wait_phase(api, namespace, "Suspended")
    api.wait("pods", namespace, lambda pods: not pods)
    three = dict.fromkeys(("services", "networkpolicies"), "digits")
    three["configmaps"] = config_map_of(api, namespace)
    for kind, name in three.items():
        api.delete(kind, namespace, name)
    for seconds in (5000, 6000):  # the operator looks at the job again, each time
        changed = api.patch("dtjobs", namespace, "digits", {"spec": {"activeDeadlineSeconds": seconds}})
        generation = changed["metadata"]["generation"]
        api.wait_for(
            "dtjobs",
            namespace,
            "digits",
            lambda one, wanted=generation: one and one["status"]["observedGeneration"] == wanted,
        )
    for kind, name in three.items():
        assert name not in {one["metadata"]["name"] for one in api.list(kind, namespace)}, kind
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": False}})
    wait_phase(api, namespace, "Running")
    for kind, name in three.items():
        api.wait_for(kind, namespace, name, lambda one: one is not None)


async def test_a_field_that_an_api_server_does_not_know_is_never_dropped(
    cluster: ControlPlane, api: Api, namespace: str
) -> None:
    """A selector without its matchLabels would become one of every pod."""
    path = f"apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    stored = api.call("POST", path, {"metadata": {"name": "digits"}, "spec": {"podSelector": {}}})
    typing_error = {"podSelector": {}, "ingress": [{"from": [{"podSelector": {"app": "prometheus"}}]}]}
    wanted = {**stored, "kind": "NetworkPolicy", "spec": typing_error}
    async with connect(str(cluster.kubeconfig)) as kube:
        with pytest.raises(Refused, match="unknown field"):
            await kube.repair(wanted, stored["metadata"]["uid"])
    assert spec_of(api, "networkpolicies", namespace) == stored["spec"]
