# SPDX-License-Identifier: Apache-2.0
"""What is said of checkpoints: whether they outlive the chief's pod, and which of them was really restored."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_progress import ServedStatus
from tools.cluster.rest import Api, Object

CLAIM: Object = {"persistentVolumeClaim": {"claimName": "digits"}}


@pytest.fixture
def supervisor() -> Iterator[ServedStatus]:
    """The chief's status server."""
    server = ServedStatus()
    yield server
    server.close()


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"checkpoint": {"storage": {"volume": CLAIM}}}, "True"),
        ({"checkpoint": {"storage": {"volume": {"emptyDir": {}}}}}, "False"),
        ({"checkpoint": {"storage": {"volume": {"hostPath": {"path": "/data"}}}}}, "Unknown"),
    ],
    ids=["claim", "emptyDir", "hostPath"],
)
def test_the_condition_checkpoints_kept_is_set_from_the_start(
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


@pytest.mark.parametrize("kept", [True, False], ids=["claim", "emptyDir"])
def test_events_name_the_restored_step_and_no_step_that_is_lost(
    shared_operator: OperatorProcess,
    api: Api,
    namespace: str,
    kubelet: Kubelet,
    supervisor: ServedStatus,
    kept: bool,
) -> None:
    volume: dict[str, Any] = {"persistentVolumeClaim": {"claimName": "digits"}} if kept else {"emptyDir": {}}
    checkpoint = {"storage": {"volume": volume}}
    api.create(
        "dtjobs", namespace, job(strategy="Mirrored", network={"statusPort": supervisor.port}, checkpoint=checkpoint)
    )
    uid = api.get("dtjobs", namespace, "digits")["metadata"]["uid"]
    said = {"jobUid": uid, "attempt": 0, "incarnation": 0, "restoredStep": 0, "step": 110}
    supervisor.status = {**said, "checkpoint": {"step": 100, "time": "2026-11-21T10:00:02Z"}}
    kubelet.run("digits-chief-0-0", address="127.0.0.1")
    api.wait_for("dtjobs", namespace, "digits", lambda f: f and "checkpoint" in f.get("status", {}))
    kubelet.exit("digits-chief-0-0", 1)
    found = api.wait_for(
        "dtjobs", namespace, "digits", lambda f: f and f["status"].get("restarts", {}).get("total") == 1
    )
    assert found is not None
    assert ("checkpoint" in found["status"]) == kept
    again = {"attempt": 1, "restoredStep": 100, "step": 100, "checkpoint": {"step": 100}} if kept else {"attempt": 1}
    supervisor.status = {**said, "step": 0, **again}
    kubelet.run("digits-chief-0-1", address="127.0.0.1")
    found = api.wait_for("dtjobs", namespace, "digits", lambda f: f and "restored" in f["status"])
    assert found is not None
    assert found["status"]["restored"]["step"] == (100 if kept else 0)
    where = "the checkpoint at step 100"
    wanted = (
        (f"training restarts from {where}", f"Training went on from {where}")
        if kept
        else (f"training restarts at step 0, as {where} ends with the chief's pod", "Training began again at step 0")
    )

    def said_by(events: dict[str, Object]) -> str:
        return "\n".join(one["message"] for one in events.values())

    # An event follows the status that it tells of.
    events = api.wait("events", namespace, lambda found: all(words in said_by(found) for words in wanted))
    assert kept or "from the checkpoint at step" not in said_by(events)
