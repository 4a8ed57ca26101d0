# SPDX-License-Identifier: Apache-2.0
"""What was saved last is evaluated, though the evaluator was not at work when training ended, against a real API
server."""

import json
from typing import Any

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import all_created, job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

CLAIM = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "digits"}}}}


def with_evaluator(**spec: Any) -> Object:
    manifest = job(strategy="Mirrored", **spec)
    manifest["spec"]["replicaSpecs"]["evaluator"] = {}
    return manifest


def wait_pod(api: Api, namespace: str, name: str) -> Object:
    found = api.wait_for("pods", namespace, name, lambda pod: pod is not None)
    assert found is not None
    return found


def finish(api: Api, namespace: str, kubelet: Kubelet, evaluator: str) -> None:
    """The evaluator runs and finishes, and its last words reach the status of a job that stays Succeeded."""
    kubelet.run(evaluator)
    kubelet.exit(evaluator, 0, message=json.dumps({"state": "finished", "evaluation": {"step": 460}}))
    done = api.wait_for(
        "dtjobs", namespace, "digits", lambda found: found and found["status"].get("evaluation") == {"step": 460}
    )
    assert done is not None
    assert done["status"]["phase"] == "Succeeded"
    assert {"role": "evaluator", "attempt": int(evaluator[-1]), "indexes": "0"} in done["status"]["internal"][
        "finished"
    ]


@pytest.mark.parametrize("state", ["evicted", "drained", "waits for a node"])
def test_an_evaluator_that_was_not_at_work_is_made_again(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet, state: str
) -> None:
    api.create("dtjobs", namespace, with_evaluator(checkpoint=CLAIM))
    first = wait_pod(api, namespace, "digits-evaluator-0-0")
    assert "podAffinity" in first["spec"]["affinity"]
    kubelet.run("digits-chief-0-0")
    if state == "waits for a node":
        kubelet.unschedulable("digits-evaluator-0-0")
    else:
        kubelet.run("digits-evaluator-0-0")
    wait_phase(api, namespace, "Running")
    api.wait_for("dtjobs", namespace, "digits", all_created)
    kubelet.succeed("digits-chief-0-0")
    wait_phase(api, namespace, "Succeeded")
    if state == "evicted":
        kubelet.evict("digits-evaluator-0-0")
    elif state == "drained":
        kubelet.drain("digits-evaluator-0-0")
    second = wait_pod(api, namespace, "digits-evaluator-0-1")
    assert "podAffinity" not in second["spec"].get("affinity", {})
    finish(api, namespace, kubelet, "digits-evaluator-0-1")
    assert "EvaluatorRestarting" in kubectl("get", "events", "--field-selector=involvedObject.name=digits").stdout
