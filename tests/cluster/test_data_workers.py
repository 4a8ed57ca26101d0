# SPDX-License-Identifier: Apache-2.0
"""Data workers against a real API server: as many as the spec says, replaced alone, and gone when the job ends."""

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import all_created, job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

CHIEF = "digits-chief-0-0"


def names(*data: str) -> set[str]:
    return {CHIEF, *(f"digits-data-{one}" for one in data)}


def wait_for(api: Api, namespace: str, *data: str) -> dict[str, Object]:
    """Wait until there are the chief and these attempts of data workers, and no others."""
    return api.wait("pods", namespace, lambda pods: set(pods) == names(*data))


def active(job: Object) -> int:
    """How many data workers run, by the status."""
    return int(job["status"]["replicaStatuses"]["data"].get("active", 0))


def test_their_number_changes_while_the_job_runs_and_a_lost_one_is_replaced_alone(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet
) -> None:
    roles = {"chief": {}, "data": {"replicas": 2}}
    api.create("dtjobs", namespace, job(strategy="Default", replicaSpecs=roles))
    pods = wait_for(api, namespace, "0-0", "1-0")
    for name in pods:
        kubelet.run(name)
    api.wait_for("dtjobs", namespace, "digits", all_created)
    env = {one["name"]: one.get("value") for one in pods["digits-data-1-0"]["spec"]["containers"][0]["env"]}
    assert env["DTJOB_DATA_SERVICE"] == "grpc://digits-chief-0.digits:2225"
    assert env["DTJOB_DATA_ADDRESS"] == "digits-data-1.digits:2222"
    patch = '{"spec":{"replicaSpecs":{"data":{"replicas":%d}}}}'
    kubectl("patch", "dtjob/digits", "--type=merge", "-p", patch % 3)
    wait_for(api, namespace, "0-0", "1-0", "2-0")
    kubelet.run("digits-data-2-0")
    kubelet.exit("digits-data-1-0", 137)
    wait_for(api, namespace, "0-0", "1-1", "2-0")
    kubelet.run("digits-data-1-1")
    api.wait_for("dtjobs", namespace, "digits", lambda one: active(one) == 3)
    kubectl("patch", "dtjob/digits", "--type=merge", "-p", patch % 1)
    wait_for(api, namespace, "0-0")
    api.wait_for("dtjobs", namespace, "digits", lambda one: active(one) == 1)
    assert wait_phase(api, namespace, "Running")["status"]["restarts"]["total"] == 0
    kubelet.succeed(CHIEF)
    assert wait_phase(api, namespace, "Succeeded")
    wait_for(api, namespace)
