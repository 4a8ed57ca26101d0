"""Whether checkpoints outlive the chief's pod is said on the job, in a condition and by one event."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

CLAIM: Object = {"persistentVolumeClaim": {"claimName": "digits"}}


def mounted(volume: Object) -> Object:
    """Replicas whose chief mounts this volume of the template's own where checkpoints are written."""
    training = {"name": "tensorflow", "volumeMounts": [{"name": "data", "mountPath": "/checkpoints"}]}
    return {"chief": {"template": {"spec": {"containers": [training], "volumes": [{"name": "data", **volume}]}}}}


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"checkpoint": {"directory": "/checkpoints", "volume": CLAIM}}, "True"),
        ({"checkpoint": {"directory": "/checkpoints"}, "replicas": mounted(CLAIM)}, "True"),
        ({"checkpoint": {"directory": "/checkpoints"}}, "False"),
        ({"checkpoint": {"directory": "/checkpoints", "volume": {"emptyDir": {}}}}, "False"),
        ({"checkpoint": {"directory": "/checkpoints", "volume": {"hostPath": {"path": "/data"}}}}, "Unknown"),
    ],
    ids=["claim", "claim-of-the-template", "no-volume", "emptyDir", "hostPath"],
)
def test_it_is_said_from_the_start(
    shared_operator: OperatorProcess,
    api: Api,
    namespace: str,
    kubectl: Kubectl,
    auto_kubelet: Kubelet,
    spec: dict[str, Any],
    status: str,
) -> None:
    api.create("dtjobs", namespace, job(strategy="Mirrored", **spec))
    found = wait_phase(api, namespace, "Running")
    (said,) = [one for one in found["status"]["conditions"] if one["type"] == "CheckpointsKept"]
    assert (said["status"], said["observedGeneration"]) == (status, 1)
    assert "condition met" in kubectl("wait", f"--for=condition=CheckpointsKept={status}", "dtjob/digits").stdout
    auto_kubelet.exit("digits-chief-0-0", 1)
    api.wait_for("dtjobs", namespace, "digits", lambda f: f and f["status"].get("restarts", {}).get("total") == 1)
    events = [one for one in api.list("events", namespace) if one["reason"] == "CheckpointsNotKept"]
    assert [one["message"] for one in events] == ([] if status == "True" else [said["message"]])
    assert sum(one.get("count") or 1 for one in events) == len(events)
