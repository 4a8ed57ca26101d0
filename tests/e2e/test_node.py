# SPDX-License-Identifier: Apache-2.0
"""The bare node: pods run, their logs and names are to be had, and it may go and come back."""

import json
import os

import pytest

from tests.cluster.test_control_plane import wait_until
from tools.cluster import existing
from tools.cluster.bare_node import BareNode
from tools.cluster.rest import Api
from tools.node import busybox, cgroup, leftovers
from tools.node.busybox import FOREVER, enforce_restricted, in_phase, pod


@pytest.fixture(scope="module")
def image(node: BareNode, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A shell, a few programs and kubectl, on the node."""
    return node.load(busybox.write(tmp_path_factory.mktemp("image"), kubectl=node.programs["kubectl"]))


def test_a_pod_runs_and_kubectl_reaches_into_it(api: Api, node: BareNode, namespace: str, image: str) -> None:
    enforce_restricted(api, namespace)
    api.create("pods", namespace, pod("talker", image, *FOREVER))
    running = in_phase(api, namespace, "talker", "Running")
    assert running["status"]["podIP"].startswith("10.244.")
    kubectl = ("--namespace", namespace)
    wait_until(lambda: node.kubectl(*kubectl, "logs", "talker").stdout == "hello\n")
    assert "uid=1000" in node.kubectl(*kubectl, "exec", "talker", "--", "id").stdout
    node.kubectl(*kubectl, "delete", "pod", "talker", "--timeout=60s")


def test_exit_codes_are_reported(api: Api, namespace: str, image: str) -> None:
    api.create("pods", namespace, pod("leaver", image, "/bin/sh", "-c", "exit 7"))
    status = in_phase(api, namespace, "leaver", "Failed")["status"]["containerStatuses"][0]
    assert status["state"]["terminated"]["exitCode"] == 7


def test_a_headless_name_leads_to_its_pod(api: Api, namespace: str, image: str) -> None:
    spec = {"clusterIP": "None", "selector": {"group": "group"}, "publishNotReadyAddresses": True}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "group"}, "spec": spec}
    api.create("services", namespace, service)
    api.create("pods", namespace, pod("a", image, "/bin/httpd", "-f", "-p", "2222", "-h", "/etc"))
    in_phase(api, namespace, "a", "Running")
    script = "until wget -q -O - http://a.group:2222/hostname; do sleep 1; done"
    api.create("pods", namespace, pod("b", image, "/bin/sh", "-c", script))
    in_phase(api, namespace, "b", "Succeeded")


def test_a_pod_reaches_the_api_server_as_clients_in_a_cluster_do(
    api: Api, node: BareNode, namespace: str, image: str
) -> None:
    # With the pod's own token and the cluster's certificate. /version is for everybody, so that this needs no rights.
    api.create("pods", namespace, pod("client", image, "/bin/kubectl", "get", "--raw", "/version"))
    in_phase(api, namespace, "client", "Succeeded")
    said = node.kubectl("--namespace", namespace, "logs", "client").stdout
    assert json.loads(said)["gitVersion"].startswith("v1.")


def test_pods_of_a_node_have_the_cpu_weight_of_a_machine_of_their_own(node: BareNode) -> None:
    cores = os.cpu_count() or 1
    weights = {weight for top in leftovers.cgroups() if (weight := cgroup.weight_of(top)) is not None}
    assert weights == {len(node.nodes) * cores}
    each = (cgroup.weight_of(top / name) for top in leftovers.cgroups() for name in node.nodes)
    assert {weight for weight in each if weight is not None} == {cores}


def test_a_claim_of_no_class_gets_a_volume_that_goes_with_it(
    api: Api, node: BareNode, namespace: str, image: str
) -> None:
    api.create("persistentvolumeclaims", namespace, existing.claim(namespace, "data", shared=False, storage_class=None))
    api.create("pods", namespace, pod("a", image, "/bin/sh", "-c", "echo kept >/volume/file", claim="data"))
    in_phase(api, namespace, "a", "Succeeded")
    [directory] = [path for path in node.volumes.iterdir() if (path / "file").exists()]
    api.delete("pods", namespace, "a")
    api.delete("persistentvolumeclaims", namespace, "data")
    api.wait_for("persistentvolumes", None, f"pvc-{directory.name}", lambda volume: volume is None)
    wait_until(lambda: not directory.exists())
