# SPDX-License-Identifier: Apache-2.0
"""Deadlines, and how long a job stays after its end, against a real API server."""

import json

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api


def test_an_ended_job_goes_with_all_that_it_has(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet
) -> None:
    for name, seconds in (("well", 1), ("badly", 3600)):
        policy = {"maxRestartsWithoutProgress": 0}
        api.create("dtjobs", namespace, job(name, "Default", ttlSecondsAfterFinished=seconds, failurePolicy=policy))
        kubelet.run(f"{name}-chief-0-0")
    kubelet.exit("badly-chief-0-0", 1)
    wait_phase(api, namespace, "Failed", "badly")
    kubelet.succeed("well-chief-0-0")
    api.wait_for("dtjobs", namespace, "well", lambda found: found is None)
    api.wait("pods", namespace, lambda pods: set(pods) == {"badly-chief-0-0"})
    assert api.get("dtjobs", namespace, "badly")["status"]["phase"] == "Failed"
    at_once = json.dumps({"spec": {"ttlSecondsAfterFinished": 0}})
    kubectl("patch", "dtjob", "badly", "--type=merge", "--patch", at_once)
    api.wait_for("dtjobs", namespace, "badly", lambda found: found is None)
