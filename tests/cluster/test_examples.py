# SPDX-License-Identifier: Apache-2.0
"""Every manifest of examples/ gets its pods from a real API server, in a namespace under the restricted profile."""

import pytest
import yaml

from tests.cluster.conftest import Kubectl
from tests.cluster.support.operator_process import OperatorProcess
from tests.unit.test_examples import MANIFESTS
from tools.cluster.rest import Api, Object

EXPECTED = sum(
    role.get("replicas", 1)
    for file in MANIFESTS
    for role in yaml.safe_load(file.read_text())["spec"]["replicaSpecs"].values()
)


@pytest.fixture
def pods(api: Api, namespace: str, kubectl: Kubectl, shared_operator: OperatorProcess) -> dict[str, Object]:
    """The pods of all examples by name."""
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    kubectl("apply", "--server-side", *(f"--filename={file}" for file in MANIFESTS))  # else nulls are lost
    found = api.wait("pods", namespace, lambda found: len(found) == EXPECTED)
    return {name: pod["spec"] for name, pod in found.items()}


def training(pod: Object) -> Object:
    """The training container, with its mounts and variables by name."""
    (container,) = [one for one in pod["containers"] if one["name"] == "tensorflow"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    variables = {variable["name"]: variable for variable in container["env"]}
    return {**container, "volumeMounts": mounts, "env": variables}


def test_the_examples_get_their_pods_with_secrets_volumes_and_the_users_of_the_cluster(pods: dict[str, Object]) -> None:
    secret, volumes = training(pods["secret-worker-1-0"]), pods["secret-worker-1-0"]["volumes"]
    assert secret["envFrom"] == [{"secretRef": {"name": "database"}}]
    assert secret["env"]["TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": "tracker", "key": "token"}}
    assert secret["volumeMounts"]["tracker"] == "/etc/tracker"
    assert {one["name"]: one.get("secret", {}).get("secretName") for one in volumes}["tracker"] == "tracker"
    for index in (0, 1):
        data = pods[f"data-claim-worker-{index}-0"]
        claims = {
            one["name"]: one["persistentVolumeClaim"] for one in data["volumes"] if "persistentVolumeClaim" in one
        }
        assert claims["data"] == {"claimName": "images"}
        assert training(data)["volumeMounts"]["data"] == "/data"
        assert training(pods[f"gpus-worker-{index}-0"])["resources"]["limits"]["nvidia.com/gpu"] == "8"
        user = pods[f"openshift-worker-{index}-0"]["securityContext"]
        assert (user["runAsNonRoot"], set(user) & {"runAsUser", "runAsGroup", "fsGroup"}) == (True, set())
