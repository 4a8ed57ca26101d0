# SPDX-License-Identifier: Apache-2.0
"""Pods in a namespace that enforces the restricted Pod Security profile, as the real API server's admission judges."""

from typing import Any

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api

ENFORCE = "pod-security.kubernetes.io/enforce=restricted"


def chief_with(**spec: Any) -> dict[str, Any]:
    return {"chief": {"template": {"spec": spec}}}


def test_templates_that_set_one_key_still_pass_the_restricted_profile(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet
) -> None:
    """With an init container, a sidecar and a restartable init container, of which the profile asks the same."""
    kubectl("label", "namespace", namespace, ENFORCE)
    replicas = chief_with(
        securityContext={"fsGroup": 2000, "supplementalGroups": [3000]},
        initContainers=[
            {"name": "get", "image": "busybox"},
            {"name": "proxy", "image": "busybox", "restartPolicy": "Always"},
        ],
        containers=[
            {"name": "tensorflow", "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}}},
            {"name": "log", "image": "busybox", "securityContext": {"runAsUser": 2000}},
        ],
    )
    api.create("dtjobs", namespace, job(strategy="Mirrored", replicaSpecs=replicas))
    pod = wait_pods(api, namespace, "digits-chief-0-0")["digits-chief-0-0"]["spec"]
    context = pod["securityContext"]
    assert (context["fsGroup"], context["supplementalGroups"], context["runAsNonRoot"]) == (2000, [3000], True)
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}


def test_a_template_that_asks_for_root_gets_it_where_the_namespace_allows_it(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    """And a null, which the API server keeps inside a template, leaves the key to the cluster."""
    asked = {"runAsUser": 0, "capabilities": {"add": ["CAP_SYS_ADMIN"], "drop": None}}
    replicas = chief_with(
        securityContext={"fsGroup": None}, containers=[{"name": "tensorflow", "securityContext": asked}]
    )
    api.create("dtjobs", namespace, job(strategy="Mirrored", replicaSpecs=replicas))
    pod = wait_pods(api, namespace, "digits-chief-0-0")["digits-chief-0-0"]["spec"]
    assert "fsGroup" not in pod["securityContext"]
    assert pod["containers"][0]["securityContext"] == {
        "runAsUser": 0,
        "runAsNonRoot": False,
        "capabilities": {"add": ["CAP_SYS_ADMIN"]},
    }


def test_a_pod_that_the_restricted_profile_refuses_is_named_in_the_status(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet
) -> None:
    kubectl("label", "namespace", namespace, ENFORCE)
    replicas = chief_with(securityContext={"runAsUser": 0})
    api.create("dtjobs", namespace, job(strategy="Mirrored", replicaSpecs=replicas))
    found = api.wait_for(
        "dtjobs", namespace, "digits", lambda found: found and found.get("status", {}).get("reason") == "CannotCreate"
    )
    assert found is not None
    assert "runAsNonRoot" in found["status"]["message"]
