# SPDX-License-Identifier: Apache-2.0
"""What a job left on its volume, looked at from a pod that mounts the same claim."""

import re
from typing import Any

from dtjob.objects.pod.security import CONTAINER_SECURITY, POD_SECURITY
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api, Object

_EVALUATE = """
import keras, numpy as np
digits = np.load("/workspace/examples/digits.npz")
held_out = np.arange(len(digits["images"])) % 5 == 0
model = keras.saving.load_model("/checkpoints/model.keras")
x = (digits["images"][held_out] / 16.0)[..., None].astype("float32")
print("accuracy", float((model.predict(x, verbose=0).argmax(1) == digits["target"][held_out]).mean()))
"""


def mounts_claim(pod: Object, claim: str) -> bool:
    """Whether the pod's training container sees the claim."""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    (container,) = [one for one in pod["spec"]["containers"] if one["name"] == "tensorflow"]
    mounted = [volumes.get(mount["name"], {}) for mount in container["volumeMounts"]]
    return claim in [volume.get("persistentVolumeClaim", {}).get("claimName") for volume in mounted]


def python_pod(name: str, image: str, script: str, claim: str | None = None, **labels: str) -> Object:
    """A pod under the restricted profile that runs a script in the trainer's image, with a claim at /checkpoints."""
    container: Object = {
        "name": "python",
        "image": image,
        "command": ["python3", "-c", script],
        "securityContext": CONTAINER_SECURITY,
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "securityContext": POD_SECURITY,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    if claim:
        container["volumeMounts"] = [{"name": "claim", "mountPath": "/checkpoints"}]
        spec["volumes"] = [{"name": "claim", "persistentVolumeClaim": {"claimName": claim}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def output(api: Api, cluster: Cluster, namespace: str, pod: Object) -> str:
    """Run a pod to its end and return its log. Raises AssertionError with the log where it fails."""
    name = pod["metadata"]["name"]
    api.create("pods", namespace, pod)
    ended = api.wait_for(
        "pods", namespace, name, lambda one: one and one["status"].get("phase") in ("Succeeded", "Failed"), 120
    )
    log = str(cluster.kubectl("--namespace", namespace, "logs", name).stdout)
    assert ended is not None
    assert ended["status"]["phase"] == "Succeeded", f"pod {name}: {log}"
    return log


def held_out_accuracy(api: Api, cluster: Cluster, namespace: str, image: str, claim: str = "digits") -> float:
    """The accuracy of the model that the digits example saved on the claim, loaded by plain Keras."""
    log = output(api, cluster, namespace, python_pod("evaluate", image, _EVALUATE, claim))
    found = re.search(r"^accuracy ([0-9.]+)$", log, re.M)
    assert found, log
    return float(found[1])
