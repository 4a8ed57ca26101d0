# SPDX-License-Identifier: Apache-2.0
"""What one tenant's objects may do to the operator of all: nothing."""

import json
from pathlib import Path

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support.chart import wait_until
from tests.cluster.support.jobs import job, wait_pods
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api

GROUP = "training.dtjob.dev"
PODS = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")
API_SERVERS_DEEPEST = 9980
"""Levels, beside some for what is around them, of the 10,000 that the API server takes."""


def create_deep(kubectl: Kubectl, namespace: str, directory: Path, name: str) -> None:
    """Apply a job whose template is nested as deep as the API server lets through (Python's parser does not)."""
    manifest = job(name, strategy="Mirrored")
    manifest["spec"]["replicaSpecs"]["chief"]["template"] = {
        "spec": {"containers": [{"name": "tensorflow", "x": "DEEP"}]}
    }
    deep = '{"a":' * API_SERVERS_DEEPEST + "1" + "}" * API_SERVERS_DEEPEST
    file = directory / f"{name}.json"
    file.write_text(json.dumps(manifest).replace('"DEEP"', deep))
    path = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/distributedtrainingjobs"
    kubectl("create", "--raw", path, "-f", str(file))


def status_of(kubectl: Kubectl, name: str, field: str) -> str:
    """A field of the job's status, by kubectl: this test's own JSON parser has the same trouble."""
    return kubectl("get", "dtjob", name, "-o", f"jsonpath={{.status.{field}}}").stdout


@pytest.mark.resync_seconds(1)
def test_a_job_nested_too_deep_does_not_stop_other_jobs(
    operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    operator.wait_log("is watching")
    create_deep(kubectl, namespace, tmp_path, "deep")
    wait_until(lambda: status_of(kubectl, "deep", "reason") == "InvalidSpec", "the deep job's status says so")
    assert "nested more than 64 levels deep" in status_of(kubectl, "deep", "message")
    api.create("dtjobs", namespace, job())
    wait_pods(api, namespace, *PODS)
    operator.restart()
    api.create("dtjobs", namespace, job("second", strategy="Mirrored"))
    wait_pods(api, namespace, *PODS, "second-chief-0-0")
    assert operator.running()


@pytest.mark.resync_seconds(1)
def test_a_pod_that_lost_its_job_name_label_is_found_by_the_create_call(
    operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl
) -> None:
    """The watch says that it is gone, the create says that it is there."""
    api.create("dtjobs", namespace, job())
    wait_pods(api, namespace, *PODS)
    operator.kill()
    kubectl("label", "pod", PODS[1], f"{GROUP}/job-name-")
    operator.start()
    operator.wait_log("is watching")
    api.create("dtjobs", namespace, job("second"))
    wait_until(lambda: status_of(kubectl, "second", "ready") == "0/3", "the operator goes on")
    wait_until(lambda: len(api.list("pods", namespace)) >= 6, "the other job's pods")
    assert operator.running()
