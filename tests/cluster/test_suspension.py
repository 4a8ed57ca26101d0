# SPDX-License-Identifier: Apache-2.0
"""A job that is suspended and goes on, and one that is another's, against a real API server."""

import json

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import all_created, job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

FIRST = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")
SHARED = ("services", "networkpolicies")


def suspend(kubectl: Kubectl, value: bool) -> None:
    """What a user does, or Kueue."""
    kubectl("patch", "dtjob", "digits", "--type=merge", "--patch", json.dumps({"spec": {"suspend": value}}))


def conditions(found: Object) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in found["status"]["conditions"]}


def reasons(api: Api, namespace: str) -> list[str]:
    """Of the events on the job."""
    events = api.list("events", namespace)
    return [one["reason"] for one in events if one["involvedObject"]["kind"] == "DistributedTrainingJob"]


def running(kubelet: Kubelet, api: Api, namespace: str, *pods: str) -> Object:
    for pod in pods:
        kubelet.run(pod)
    wait_phase(api, namespace, "Running")
    found = api.wait_for("dtjobs", namespace, "digits", all_created)
    assert found is not None
    return found


def test_a_job_that_is_created_suspended_has_nothing_until_it_goes_on(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job(suspend=True, startDeadlineSeconds=1))
    found = wait_phase(api, namespace, "Suspended")
    assert conditions(found)["Suspended"] == ("True", "JobSuspended")
    assert "startTime" not in found["status"]
    assert "condition met" in kubectl("wait", "--for=condition=Suspended", "dtjob/digits", "--timeout=5s").stdout
    assert "Suspended" in kubectl("get", "dtjobs").stdout
    for kind in ("pods", *SHARED):
        assert api.list(kind, namespace) == []
    # As Kueue does: where its pods go is decided, and that it goes on, in one change.
    moved = {"worker": {"template": {"spec": {"nodeSelector": {"pool": "large"}}}}}
    change = {"spec": {"suspend": False, "replicaSpecs": moved, "startDeadlineSeconds": None}}
    kubectl("patch", "dtjob", "digits", "--type=merge", "--patch", json.dumps(change))
    pods = wait_pods(api, namespace, *FIRST)
    assert pods["digits-worker-0-0"]["spec"]["nodeSelector"] == {"pool": "large"}
    found = running(kubelet, api, namespace, *FIRST)
    assert conditions(found)["Suspended"] == ("False", "JobResumed")
    api.wait("events", namespace, lambda _: {"Suspended", "Resumed"} <= set(reasons(api, namespace)))
