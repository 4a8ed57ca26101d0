"""The bare node: pods run, their logs and names are to be had, and it may go and come back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.rest import Api
from tests.cluster.test_control_plane import wait_until
from tests.e2e import images
from tests.e2e.node import Node

IMAGE = "dtjob-busybox:test"
APPLETS = ("sh", "echo", "cat", "httpd", "id", "kill", "sleep", "wget", "true")
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture(scope="module")
def image(node: Node, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A shell, a few programs and kubectl, on the node."""
    busybox = Path(shutil.which("busybox") or "")
    archive = tmp_path_factory.mktemp("image") / "busybox.tar"
    files = {f"bin/{name}": busybox for name in APPLETS} | {"bin/kubectl": node.programs["kubectl"]}
    images.write(archive, IMAGE, files, ["/bin/sh"])
    node.import_image(archive)
    return IMAGE


def pod(name: str, image: str, *command: str, **spec: Any) -> dict[str, Any]:
    """A pod of one container under the restricted profile, behind the headless Service `group`."""
    container = {"name": "main", "image": image, "command": list(command), "securityContext": RESTRICTED}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"group": "group"}},
        "spec": {"hostname": name, "subdomain": "group", "restartPolicy": "Never", "containers": [container], **spec},
    }


def in_phase(api: Api, namespace: str, name: str, phase: str) -> dict[str, Any]:
    found = api.wait_for("pods", namespace, name, lambda one: one and one["status"].get("phase") == phase)
    assert found is not None
    return found


def test_a_pod_runs_and_kubectl_reaches_into_it(api: Api, node: Node, namespace: str, image: str) -> None:
    enforce = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    api.patch("namespaces", None, namespace, enforce)
    script = "trap 'exit 0' TERM; echo hello; while true; do sleep 1 & wait $!; done"
    api.create("pods", namespace, pod("talker", image, "/bin/sh", "-c", script))
    running = in_phase(api, namespace, "talker", "Running")
    assert running["status"]["podIP"].startswith("10.244.0.")
    kubectl = ("--namespace", namespace)
    wait_until(lambda: node.kubectl(*kubectl, "logs", "talker").stdout == "hello\n")
    assert "uid=65532" in node.kubectl(*kubectl, "exec", "talker", "--", "id").stdout
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
    api: Api, node: Node, namespace: str, image: str
) -> None:
    # With the pod's own token and the cluster's certificate. /version is for everybody, so that this needs no rights.
    api.create("pods", namespace, pod("client", image, "/bin/kubectl", "get", "--raw", "/version"))
    in_phase(api, namespace, "client", "Succeeded")
    said = node.kubectl("--namespace", namespace, "logs", "client").stdout
    assert json.loads(said)["gitVersion"].startswith("v1.")


def test_a_stopped_kubelet_is_a_node_gone_and_comes_back(api: Api, node: Node, namespace: str, image: str) -> None:
    node.kubelet.stop()
    api.create("pods", namespace, pod("late", image, "/bin/true"))
    found = api.wait_for("pods", namespace, "late", lambda one: one and one["spec"].get("nodeName"))
    assert found is not None
    assert found["status"]["phase"] == "Pending"
    node.kubelet.start()
    in_phase(api, namespace, "late", "Succeeded")
