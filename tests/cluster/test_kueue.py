# SPDX-License-Identifier: Apache-2.0
"""Jobs in a queue against a real API server with Kueue's definitions, where the test plays Kueue's controller."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.conftest import Kubectl
from tests.cluster.support import kueue
from tests.cluster.support.jobs import columns, job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

QUEUE = "kueue.x-k8s.io/queue-name"
FIRST = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")
AGAIN = ("digits-chief-0-1", "digits-worker-0-1", "digits-worker-1-1")
ASKED = {"requests": {"cpu": "1", "memory": "2Gi"}}


def queued(name: str = "digits", **labels: str) -> Object:
    """A chief and two workers in a queue."""
    replicas = {"chief": {"resources": ASKED}, "worker": {"replicas": 2, "resources": ASKED}}
    made = job(name, replicaSpecs=replicas)
    made["metadata"]["labels"] = {QUEUE: "team-a", **labels}
    return made


def says(words: str) -> Any:
    """A condition for `Api.wait_for` on a job: its message has these words."""
    return lambda found: found is not None and words in found.get("status", {}).get("message", "")


def has(type_: str, value: str, reason: str | None = None) -> Any:
    """A condition for a Workload or a job: it has this one."""

    def holds(found: Object | None) -> bool:
        conditions = (found or {}).get("status", {}).get("conditions") or ()
        return any(
            (one["type"], one["status"]) == (type_, value) and reason in (None, one["reason"]) for one in conditions
        )

    return holds


def wait_job(api: Api, namespace: str, holds: Any, name: str = "digits") -> Object:
    found = api.wait_for("dtjobs", namespace, name, holds)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def definitions(api: Api) -> Iterator[None]:
    """Kueue's definitions, and a flavour and a class."""
    kueue.install(api)
    spot = kueue.flavour("spot", {"pool": "spot"}, {"key": "spot", "operator": "Exists", "effect": "NoSchedule"})
    api.create("resourceflavors", None, spot)
    api.create("workloadpriorityclasses", None, kueue.priority_class("high", 1000))
    yield
    kueue.uninstall(api)


def test_a_queued_job_waits_until_kueue_is_installed(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, request: pytest.FixtureRequest
) -> None:
    api.create("dtjobs", namespace, queued())
    found = wait_job(api, namespace, says("this cluster has no Kueue (kueue.x-k8s.io/v1beta2)"))
    assert (found["status"]["phase"], found["status"]["reason"]) == ("Suspended", "NoKueue")
    request.getfixturevalue("definitions")
    made = kueue.Controller(api, namespace).workload()
    assert made["spec"]["queueName"] == "team-a"
    assert made["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]
    assert made["metadata"]["labels"]["kueue.x-k8s.io/job-uid"] == found["metadata"]["uid"]
    assert [(one["name"], one["count"]) for one in made["spec"]["podSets"]] == [("chief", 1), ("worker", 2)]
    wait_job(api, namespace, says("queued in team-a, position unknown; needs 3 cpu, 6Gi memory"))
    assert columns(kubectl)["PHASE"] == "Suspended"
    assert api.list("pods", namespace) == api.list("services", namespace) == []


def test_a_job_is_admitted_evicted_and_admitted_again(
    definitions: None, shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, kueue.on_the_page()["DistributedTrainingJob"])
    controller = kueue.Controller(api, namespace)
    assert controller.workload()["spec"]["priority"] == 1000
    controller.reserve()
    wait_job(api, namespace, says("quota is reserved in cluster queue research"))
    controller.admit({"cpu": "spot", "memory": "spot"})
    pods = wait_pods(api, namespace, *FIRST)
    for pod in pods.values():
        assert pod["spec"]["nodeSelector"] == {"pool": "spot"}
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/cluster-queue-name"] == "research"
    controller.workload(has("PodsReady", "False", "WaitForStart"))
    for pod in FIRST:
        kubelet.run(pod)
    controller.workload(has("PodsReady", "True", "Started"))
    before = wait_phase(api, namespace, "Running")
    assert has("Admitted", "True")(before)

    kubelet.hang(FIRST[0])  # it saves
    controller.evict(message="Preempted to accommodate a workload")
    api.wait("pods", namespace, lambda found: set(found) == {FIRST[0]})
    found = wait_job(api, namespace, says("the pods that are left save and end"))
    assert found["status"]["phase"] == "Suspended"
    assert has("QuotaReserved", "True")(controller.workload())  # what it holds is in use
    kubelet.release()
    released = controller.workload(has("QuotaReserved", "False"))
    assert "admission" not in released["status"]
    assert has("Requeued", "True", "Preempted")(released)
    wait_job(api, namespace, says("Kueue says: Preempted to accommodate a workload"))

    controller.admit({"cpu": "spot"})
    wait_pods(api, namespace, *AGAIN)
    for pod in AGAIN:
        kubelet.run(pod)
    after = wait_phase(api, namespace, "Running")
    assert after["status"]["restarts"] == before["status"]["restarts"]  # never charged
    controller.workload(has("PodsReady", "True"))
    for pod in AGAIN:
        kubelet.succeed(pod)
    wait_phase(api, namespace, "Succeeded")
    controller.workload(has("Finished", "True", "Succeeded"))


def test_the_suspension_of_a_queued_job_gives_its_quota_back(
    definitions: None, shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, queued())
    controller = kueue.Controller(api, namespace)
    first = controller.workload()
    controller.admit()
    wait_pods(api, namespace, *FIRST)
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": True}})
    api.wait("workloads", namespace, lambda found: not found)
    assert api.list("pods", namespace) == []
    wait_job(api, namespace, says("spec.suspend is true"))
    api.patch("dtjobs", namespace, "digits", {"metadata": {"labels": {QUEUE: "team-b"}}, "spec": {"suspend": False}})
    second = controller.workload()
    assert (second["spec"]["queueName"], second["metadata"]["uid"] != first["metadata"]["uid"]) == ("team-b", True)
    # While it waits the label counts at once; without it the job needs no queue.
    api.patch("dtjobs", namespace, "digits", {"metadata": {"labels": {QUEUE: "team-c"}}})
    controller.workload(lambda found: found["spec"]["queueName"] == "team-c")
    api.patch("dtjobs", namespace, "digits", {"metadata": {"labels": {QUEUE: None}}})
    wait_pods(api, namespace, *AGAIN)


def test_a_prebuilt_workload_is_adopted(
    definitions: None, shared_operator: OperatorProcess, api: Api, namespace: str
) -> None:
    api.create("dtjobs", namespace, queued("first"))
    made = kueue.Controller(api, namespace).workload()
    api.delete("dtjobs", namespace, "first")
    api.wait("workloads", namespace, lambda found: not found)
    theirs = {**made, "metadata": {"name": "theirs"}}
    theirs.pop("status", None)
    api.create("workloads", namespace, theirs)
    found = api.create("dtjobs", namespace, queued(**{"kueue.x-k8s.io/prebuilt-workload-name": "theirs"}))
    controller = kueue.Controller(api, namespace)
    adopted = controller.workload(lambda one: one["metadata"].get("ownerReferences"))
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]
    controller.admit()
    wait_pods(api, namespace, *FIRST)
