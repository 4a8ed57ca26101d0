# SPDX-License-Identifier: Apache-2.0
"""A job that is suspended and goes on while no operator runs. (Another module's operator would see it all.)"""

import json

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import all_created, job, uids, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api

FIRST = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")
SECOND = ("digits-chief-0-1", "digits-worker-0-1", "digits-worker-1-1")


def suspend(kubectl: Kubectl, value: bool) -> None:
    """What a user does, or Kueue."""
    kubectl("patch", "dtjob", "digits", "--type=merge", "--patch", json.dumps({"spec": {"suspend": value}}))


def test_an_operator_that_is_away_misses_nothing(
    operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job())
    for pod in FIRST:
        kubelet.run(pod)
    wait_phase(api, namespace, "Running")
    api.wait_for("dtjobs", namespace, "digits", all_created)
    before = uids(wait_pods(api, namespace, *FIRST))
    operator.kill()
    suspend(kubectl, True)
    suspend(kubectl, False)
    operator.start()
    generation = api.get("dtjobs", namespace, "digits")["metadata"]["generation"]
    api.wait_for("dtjobs", namespace, "digits", lambda one: one and one["status"]["observedGeneration"] == generation)
    assert uids(wait_pods(api, namespace, *FIRST)) == before
    operator.kill()
    suspend(kubectl, True)
    operator.start()
    wait_phase(api, namespace, "Suspended")
    api.wait("pods", namespace, lambda pods: not pods)
    operator.kill()
    suspend(kubectl, False)
    operator.start()
    wait_pods(api, namespace, *SECOND)
