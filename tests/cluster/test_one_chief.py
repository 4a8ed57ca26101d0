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


@pytest.mark.parametrize("label", ["job-name", "index"])
@pytest.mark.parametrize("away", [False, True], ids=["operator there", "operator away"])
def test_a_chief_that_loses_a_label_stays_the_only_chief(
    operator: OperatorProcess,
    api: Api,
    namespace: str,
    kubectl: Kubectl,
    auto_kubelet: Kubelet,
    label: str,
    away: bool,
) -> None:
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    api.wait_for("dtjobs", namespace, "digits", all_created)
    births = Births(api, namespace)
    name = f"{GROUP}/{label}"
    was = api.get("pods", namespace, "digits-chief-0-0")["metadata"]["labels"][name]
    if away:
        operator.kill()
    kubectl("label", "pod", "digits-chief-0-0", f"{name}-")
    if away:
        operator.start()
    api.wait_for("pods", namespace, "digits-chief-0-0", lambda pod: pod and pod["metadata"]["labels"].get(name) == was)
    auto_kubelet.exit("digits-worker-1-0", 1)  # the operator has the chief in view again, and goes on as ever
    wait_pods(api, namespace, "digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-1")
    auto_kubelet.succeed("digits-chief-0-0")
    done = wait_phase(api, namespace, "Succeeded")
    assert done["status"]["restarts"] == {"total": 1, "causes": {"Error": 1}}
    births.doubled()
    assert {born for born, _ in births.uids} == {"digits-worker-1-1"}
    assert "LabelsRestored" in kubectl("get", "events", "--field-selector=involvedObject.name=digits").stdout
