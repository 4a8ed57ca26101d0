# SPDX-License-Identifier: Apache-2.0
"""There is never a second chief on the same checkpoints, whatever users do to jobs and pods, against a real API
server."""

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support.births import Births
from tests.cluster.support.jobs import GROUP, all_created, job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

WORKERS = {"digits-worker-0-0", "digits-worker-1-0"}


def owner(pod: Object) -> str:
    return str(pod["metadata"]["ownerReferences"][0]["uid"])


def wait_said(api: Api, namespace: str, words: str, ready: str) -> Object:
    """Wait until the job's status says this with so many tasks up; returns the job."""

    def holds(found: Object | None) -> bool:
        status = (found or {}).get("status", {})
        return words in status.get("message", "") and status.get("ready") == ready

    found = api.wait_for("dtjobs", namespace, "digits", holds)
    assert found is not None
    return found


@pytest.mark.parametrize("restarted", [False, True], ids=["same operator", "operator restarted"])
def test_a_job_applied_again_waits_for_the_old_chief(
    operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, auto_kubelet: Kubelet, restarted: bool
) -> None:
    """The old chief, at attempt 1, still saves: its name is not in the new one's way, but its files are."""
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    auto_kubelet.exit("digits-chief-0-0", 1)
    wait_pods(api, namespace, "digits-chief-0-1", *WORKERS)
    wait_phase(api, namespace, "Running")
    auto_kubelet.hang("digits-chief-0-1")
    kubectl("delete", "dtjob", "digits", "--cascade=background")
    if restarted:
        operator.restart()
    uid = api.create("dtjobs", namespace, job())["metadata"]["uid"]

    def workers_run(pods: dict[str, Object]) -> bool:
        return {name for name, pod in pods.items() if owner(pod) == uid and pod["status"]["phase"] == "Running"} >= (
            WORKERS
        )

    api.wait("pods", namespace, workers_run)
    told = wait_said(api, namespace, "digits-chief-0-1", ready="2/3")
    assert told["status"]["phase"] == "Pending"
    assert "digits-chief-0-0" not in {one["metadata"]["name"] for one in api.list("pods", namespace)}
    auto_kubelet.release()
    pods = wait_pods(api, namespace, "digits-chief-0-0", *WORKERS)
    assert {owner(pod) for pod in pods.values()} == {uid}
    wait_phase(api, namespace, "Running")


@pytest.mark.parametrize("away", [False, True], ids=["operator there", "operator away"])
def test_a_chief_that_loses_its_label_is_replaced_when_it_has_ended(
    operator: OperatorProcess,
    api: Api,
    namespace: str,
    kubectl: Kubectl,
    auto_kubelet: Kubelet,
    away: bool,
) -> None:
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    api.wait_for("dtjobs", namespace, "digits", all_created)
    births = Births(api, namespace)
    auto_kubelet.hang("digits-chief-0-0")
    if away:
        operator.kill()
    kubectl("label", "pod", "digits-chief-0-0", f"{GROUP}/job-name-")
    if away:
        operator.start()
    api.wait_for("pods", namespace, "digits-chief-0-0", lambda pod: pod and "deletionTimestamp" in pod["metadata"])
    auto_kubelet.release()
    wait_pods(api, namespace, "digits-chief-0-1", *WORKERS)
    assert wait_phase(api, namespace, "Running")["status"]["restarts"] == {"total": 1, "causes": {"Deleted": 1}}
    births.doubled()
    assert {born for born, _ in births.uids} == {"digits-chief-0-1"}
