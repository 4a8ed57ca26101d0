# SPDX-License-Identifier: Apache-2.0
"""Gangs by Kubernetes' own scheduler from 1.37 on, on a real API server: who is bound, and when."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.support import gangs
from tests.cluster.support.chart import says, wait_until
from tests.cluster.support.gangs import bound, gang_job, group_of, looked_for, nodes_of
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.integrations.gangs.conftest import ROOT
from tools import binaries
from tools.cluster.control_plane import ControlPlane, Options
from tools.cluster.rest import Api, Object
from tools.programs import CONTROL_PLANE, NEXT, NEXT_KUBERNETES

PROVIDER = "Kubernetes"
GATES = "--feature-gates=GenericWorkload=true"
OPTIONS = Options(
    api_arguments=(GATES, "--runtime-config=scheduling.k8s.io/v1beta1=true"),
    controller_arguments=(GATES, "--controllers=podgroup-protection-controller"),
    scheduler_arguments=(GATES,),
)
RACK = "dtjob.test/rack"
_POLICY: Object = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "drops"}}
DROPS: Object = {
    **_POLICY,
    "kind": "MutatingAdmissionPolicy",
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]
        },
        "matchConditions": [{"name": "has", "expression": "has(object.spec.schedulingGroup)"}],
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": '[JSONPatch{op: "remove", path: "/spec/schedulingGroup"}]'},
            }
        ],
    },
}
BINDING: Object = {**_POLICY, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "drops"}}
HIGH: Object = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A control plane of that version; etcd and kubectl are those of the others."""
    try:
        found = binaries.find((*CONTROL_PLANE, *NEXT_KUBERNETES))
    except binaries.BinariesError as error:
        pytest.skip(f"no Kubernetes {NEXT}: {str(error).splitlines()[0]}")
    programs = found | {name.removesuffix(f"-{NEXT}"): found[name] for name in NEXT_KUBERNETES}
    with ControlPlane(programs, OPTIONS) as running:
        running.kubectl("apply", "-f", str(ROOT / "crds"))
        Api(running.kubeconfig).wait_established()
        yield running


def test_a_gang_of_four_waits_for_room_for_four(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    assert api.call("GET", "version")["minor"] == NEXT.partition(".")[2]
    gangs.four_wait_for_room_for_four(api, namespace, kubelet, PROVIDER)


def test_two_jobs_never_hold_half_each(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    gangs.two_jobs_never_hold_half_each(api, namespace, kubelet, PROVIDER)


def test_a_gang_has_its_jobs_priority_and_asks_for_no_more_than_are_left(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    """The scheduler goes by the PodGroup's priority and not by its pods'. What replaces one of three pods is a member
    too when the fourth has finished."""
    api.call("POST", "apis/scheduling.k8s.io/v1/priorityclasses", {**HIGH, "value": 1000})
    with nodes_of(api, namespace) as nodes:
        nodes.add(4)
        own = {"strategy": "ParameterServer", "program": False, "scheduling": {"priorityClassName": "high"}}
        api.create("dtjobs", namespace, gang_job(namespace, PROVIDER, workers=2, **own))
        pods = api.wait("pods", namespace, lambda pods: len(bound(pods)) == 4)
        assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods.values()} == {"digits"}
        group = group_of(api, namespace, PROVIDER)
        assert group is not None
        assert (group["spec"]["priority"], group["spec"]["priorityClassName"]) == (1000, "high")
        for name in pods:
            kubelet.run(name)
        kubelet.succeed("digits-worker-0-0")
        kubelet.exit("digits-worker-1-0", 1)
        pods = api.wait("pods", namespace, lambda pods: "worker-1-1" in bound(pods))
        assert pods["digits-worker-1-1"]["spec"]["schedulingGroup"] == {"podGroupName": "digits"}
        wait_until(lambda: minimum(api, namespace) == 3, "the gang waits for three")
    api.call("DELETE", "apis/scheduling.k8s.io/v1/priorityclasses/high")


def minimum(api: Api, namespace: str) -> int:
    """How many pods the job's gang waits for."""
    group = group_of(api, namespace, PROVIDER)
    assert group is not None
    return int(group["spec"]["schedulingPolicy"]["gang"]["minCount"])


def test_a_resumed_job_gets_a_new_pod_group(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    with nodes_of(api, namespace) as nodes:
        nodes.add(3)
        api.create("dtjobs", namespace, gang_job(namespace, PROVIDER, workers=2))
        for name in api.wait("pods", namespace, lambda pods: len(bound(pods)) == 3):
            kubelet.run(name)
        before = group_of(api, namespace, PROVIDER)
        api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": True}})
        api.wait("pods", namespace, lambda pods: not pods)
        gangs.wait_until_gone(api, namespace, PROVIDER)
        api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": False}})
        pods = api.wait("pods", namespace, lambda pods: len(bound(pods)) == 3)
        after = group_of(api, namespace, PROVIDER)
        assert before is not None
        assert after is not None
        assert before["metadata"]["uid"] != after["metadata"]["uid"]
        assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods.values()} == {"digits"}


def test_pods_that_lose_their_gang_are_not_kept_and_the_job_says_which_gate_is_missing(
    shared_operator: OperatorProcess, cluster: ControlPlane, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    """An admission policy takes the field away here as an API server without the gate does, which serves no PodGroups
    itself: they are told apart where a cluster has several."""
    cluster.kubectl("create", "--filename=-", stdin=json.dumps(DROPS))
    cluster.kubectl("create", "--filename=-", stdin=json.dumps(BINDING))
    try:
        wait_until(lambda: not keeps_group(api, namespace), "the policy is in force")
        with nodes_of(api, namespace) as nodes:
            nodes.add(3)
            api.create("dtjobs", namespace, gang_job(namespace, PROVIDER, workers=2))
            job = api.wait_for("dtjobs", namespace, "digits", says("has dropped spec.schedulingGroup from the pod"))
            assert job is not None
            assert (job["status"]["phase"], job["status"]["reason"]) == ("Pending", "CannotCreate")
            assert "turn it on with --feature-gates=GenericWorkload=true" in job["status"]["message"]
            api.wait("pods", namespace, lambda pods: not pods)
    finally:
        cluster.kubectl("delete", "mutatingadmissionpolicybindings,mutatingadmissionpolicies", "--all")


def keeps_group(api: Api, namespace: str) -> bool:
    """Whether the API server keeps `schedulingGroup` of a pod."""
    spec = {"containers": [{"name": "a", "image": "b"}], "schedulingGroup": {"podGroupName": "c"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asked"}, "spec": spec}
    return "schedulingGroup" in api.create("pods", namespace, pod, dryRun="All")["spec"]


@pytest.mark.slow  # it waits for the scheduler's backoff; test_nearness.py has what pods ask of it
def test_pods_that_must_be_near_each_other_go_to_one_rack(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    """Two racks with room for two each hold no job of three; one with room for three does."""
    near = {"scheduling": {"topology": {"required": RACK}}}
    with nodes_of(api, namespace) as nodes:
        for rack in ("a", "a", "b", "b"):
            nodes.add(1, **{RACK: rack})
        api.create("dtjobs", namespace, gang_job(namespace, PROVIDER, workers=2, **near))
        api.wait("pods", namespace, lambda pods: looked_for(pods, "digits", 3))
        nodes.add(1, **{RACK: "a"})
        nodes.add(1, **{RACK: "b"})
        pods = api.wait("pods", namespace, lambda pods: len(bound(pods)) == 3)
        racks = {node["metadata"]["name"]: node["metadata"].get("labels", {}).get(RACK) for node in api.list("nodes")}
        assert len({racks[pod["spec"]["nodeName"]] for pod in pods.values()}) == 1
