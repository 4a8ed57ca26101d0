# SPDX-License-Identifier: Apache-2.0
"""A pod that took another one's name, on a real API server: what was meant for the other does nothing to it. No
operator runs here."""

from dtjob.kube.calls.client import connect
from dtjob.objects import labels
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

NAME = "digits-worker-0-0"


async def test_no_label_of_a_pod_with_another_uid_is_changed(cluster: ControlPlane, api: Api, namespace: str) -> None:
    metadata = {"name": NAME, "labels": {labels.SERVING: "true"}}
    spec = {"containers": [{"name": "tensorflow", "image": "none"}]}
    made = api.create("pods", namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    async with connect(str(cluster.kubeconfig)) as kube:
        assert await kube.stop_serving(namespace, NAME, "another") is None
        assert api.get("pods", namespace, NAME)["metadata"]["labels"] == made["metadata"]["labels"]
        await kube.stop_serving(namespace, NAME, made["metadata"]["uid"])
        assert labels.SERVING not in api.get("pods", namespace, NAME)["metadata"].get("labels", {})
    api.delete("pods", namespace, NAME, grace=0)
