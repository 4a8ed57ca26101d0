"""PodGroups of each provider on a real API server, by the definitions that Volcano and scheduler-plugins ship; and what
a job says where the cluster has none of them. This API server has Kubernetes' own feature off, as it is by default."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.conftest import Kubectl
from tests.cluster.support.chart import says, wait_until
from tests.cluster.support.gangs import APIS, COSCHEDULING, VOLCANO, gang_job, group_of, wait_until_gone
from tests.cluster.support.jobs import phase_is, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, Object

FOUR = {f"digits-{one}-0" for one in ("chief-0", "worker-0", "worker-1", "worker-2")}
MEMBERS = {
    "Volcano": lambda pod: (
        pod["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name") == "digits"
        and pod["spec"]["schedulerName"] == "volcano"
    ),
    "Coscheduling": lambda pod: (
        pod["metadata"]["labels"].get("scheduling.x-k8s.io/pod-group") == "digits"
        and pod["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
    ),
}
"""How a pod of each provider is told to be a member."""
KUBERNETES_OWN: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "podgroups.scheduling.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in for the API of 1.36 without its gate"},
    },
    "spec": {
        "group": "scheduling.k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"},
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""Makes this API server serve PodGroups while it still drops `schedulingGroup`, as one of several may."""


def serve(cluster: ControlPlane, definition: str) -> str:
    """Have the API server serve what this definition (YAML) defines; gives its name."""
    cluster.kubectl("create", "--filename=-", stdin=definition)
    name: str = yaml.safe_load(definition)["metadata"]["name"]
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=60s")
    plural, group = name.split(".", 1)
    version = yaml.safe_load(definition)["spec"]["versions"][0]["name"]
    wait_until(
        lambda: cluster.kubectl("get", "--raw", f"/apis/{group}/{version}/{plural}", check=False).returncode == 0,
        f"{name} is served",
    )
    return name


@pytest.fixture(scope="module")
def others(cluster: ControlPlane) -> Iterator[None]:
    """Volcano's and scheduler-plugins' definitions."""
    names = [serve(cluster, file.read_text()) for file in (VOLCANO, COSCHEDULING)]
    yield
    cluster.kubectl("delete", "crd", *names)


@pytest.mark.parametrize(("provider", "field"), [("Volcano", "minMember"), ("Coscheduling", "minMember")])
def test_the_life_of_a_pod_group(
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
    pods = api.wait("pods", namespace, lambda pods: len(pods) == 5)
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
    pods = api.wait("pods", namespace, lambda pods: {name[:-2] for name in pods} >= {one[:-2] for one in FOUR})
    assert group_of(api, namespace, provider) is not None
    for name in api.wait("pods", namespace, lambda pods: len([one for one in pods if one.endswith("-1")]) == 5):
        if name.endswith("-1"):
            kubelet.run(name)
    kubelet.succeed("digits-chief-0-1")
    wait_phase(api, namespace, "Succeeded")
    wait_until_gone(api, namespace, provider)


@pytest.mark.resync_seconds(1.0)
def test_one_that_was_deleted_is_made_again_and_one_that_was_changed_is_put_right(
    others: None, operator: OperatorProcess, api: Api, namespace: str
) -> None:
    api.create("dtjobs", namespace, gang_job(namespace, "Volcano", gang={"queue": "team-a"}))
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


def test_an_operator_that_was_away_gives_up_what_a_suspended_job_left(
    others: None, operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, gang_job(namespace, "Coscheduling"))
    api.wait("pods", namespace, lambda pods: len(pods) == 4)
    operator.kill()
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": True}})
    operator.start()
    wait_phase(api, namespace, "Suspended")
    wait_until_gone(api, namespace, "Coscheduling")
    api.wait("pods", namespace, lambda pods: not pods)


def test_a_cluster_without_the_api_says_what_to_turn_on_and_goes_on_once_it_is_there(
    cluster: ControlPlane, shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl
) -> None:
    """And a pod that the API server takes out of its gang does not stay."""
    api.create("dtjobs", namespace, gang_job(namespace, "Kubernetes"))
    missing = "serves no PodGroups of scheduling.k8s.io: kube-apiserver needs --feature-gates=GenericWorkload=true"
    job = api.wait_for("dtjobs", namespace, "digits", says(missing))
    assert job is not None
    assert (job["status"]["phase"], job["status"]["reason"]) == ("Pending", "Blocked")
    assert "or set spec.scheduling.gang.provider to what the cluster has" in job["status"]["message"]
    assert api.list("pods", namespace) == []
    assert missing in kubectl("describe", "dtjob", "digits").stdout
    name = serve(cluster, json.dumps(KUBERNETES_OWN))
    try:
        dropped = "this API server has dropped spec.schedulingGroup from the pod"
        api.wait_for("dtjobs", namespace, "digits", says(dropped))
        job = api.get("dtjobs", namespace, "digits")
        assert "feature gate GenericWorkload" in job["status"]["message"]
        assert (job["status"]["phase"], job["status"]["reason"]) == ("Pending", "Blocked")
        api.wait("pods", namespace, lambda pods: not pods)
    finally:
        cluster.kubectl("delete", "crd", name)


def test_a_job_without_a_gang_asks_for_nothing(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, gang_job(namespace, ""))
    found = api.wait_for("dtjobs", namespace, "digits", phase_is("Running"))
    assert found is not None
    assert "gang" not in found["status"]


def test_the_definitions_are_those_of_the_releases() -> None:
    for file in (VOLCANO, COSCHEDULING):
        assert Path(file).read_text().startswith("---\napiVersion: apiextensions.k8s.io/v1")
