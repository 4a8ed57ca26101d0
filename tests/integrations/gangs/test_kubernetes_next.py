# SPDX-License-Identifier: Apache-2.0
"""Gangs by Kubernetes' own scheduler in 1.37, where PodGroups are of v1beta1 and another feature gate has gone."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cluster.support import gangs
from tests.cluster.support.chart import wait_until
from tests.cluster.support.gangs import api_of, bound, gang_job, group_of, nodes_of
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.integrations.gangs.conftest import ROOT
from tools import binaries
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, Object
from tools.programs import CONTROL_PLANE, NEXT, NEXT_KUBERNETES

PROVIDER = "Kubernetes"
OPTIONS = replace(
    gangs.GANG_OPTIONS,
    api_arguments=(gangs.GATES, "--runtime-config=scheduling.k8s.io/v1beta1=true"),
    scheduler_arguments=(gangs.GATES,),
)
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
    assert api_of(api, PROVIDER) == "scheduling.k8s.io/v1beta1"
    gangs.four_wait_for_room_for_four(api, namespace, kubelet, PROVIDER)


def test_two_jobs_never_hold_half_each(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    gangs.two_jobs_never_hold_half_each(api, namespace, kubelet, PROVIDER)


def test_a_gang_has_its_jobs_priority_and_asks_for_no_more_than_are_left(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    """The scheduler goes by the PodGroup's priority and not by its pods'; minCount may change, which it may not in
    1.36: what replaces one of three pods is a member too when the fourth has finished."""
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
