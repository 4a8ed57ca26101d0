# SPDX-License-Identifier: Apache-2.0
"""A job whose pods the real Kueue queues as a plain group, without a Workload of dtjob's."""

import copy

import pytest

from tests.cluster.support.jobs import wait_phase
from tests.cluster.support.kubelet import now
from tests.cluster.support.kueue import plain_group_on_the_page
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_kueue import has
from tests.integrations.kueue.nodes import Pods
from tests.integrations.kueue.test_kueue import create, pods, run
from tools.cluster.rest import Api, Object

pytestmark = pytest.mark.timeout(300, func_only=True)


def fail(api: Api, namespace: str, pod: str) -> None:
    """Its container ends with 1."""
    found = api.get("pods", namespace, pod)
    ended = {"exitCode": 1, "reason": "Error", "startedAt": found["status"]["startTime"], "finishedAt": now()}
    found["status"] |= {"phase": "Failed"}
    found["status"]["containerStatuses"][0] |= {"state": {"terminated": ended}, "ready": False}
    api.replace("pods", namespace, found, "status")


def test_a_replaced_pod_is_admitted_and_a_finished_job_keeps_no_quota(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    job = copy.deepcopy(page["DistributedTrainingJob"])
    del job["metadata"]["labels"]
    job["spec"]["replicaSpecs"] = plain_group_on_the_page()
    api.create("dtjobs", namespace, job)
    run(api, namespace, on_nodes, "digits")
    create(api, namespace, page, "second")
    fail(api, namespace, "digits-worker-1-0")
    on_nodes.run("digits-worker-1-1")
    for pod in sorted(api.wait("pods", namespace, lambda found: len(found) == len(pods("digits")))):
        on_nodes.succeed(pod)
    wait_phase(api, namespace, "Succeeded", "digits")
    api.wait_for("workloads", namespace, "digits", has("Finished", "True"))
    run(api, namespace, on_nodes, "second")
    api.delete("dtjobs", namespace, "digits")
