# SPDX-License-Identifier: Apache-2.0
"""Jobs under the real Kueue v0.19.2: quota, preemption, deactivation, and Kueue or the operator away."""

import copy
from typing import Any

import pytest

from tests.cluster.support.jobs import wait_phase, wait_pods
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_kueue import has, says
from tests.integrations.kueue.manager import Kueue
from tests.integrations.kueue.nodes import Pods
from tools.cluster.rest import DEFAULT_TIMEOUT, Api, Object

pytestmark = pytest.mark.timeout(300, func_only=True)
PRIORITY = "kueue.x-k8s.io/priority-class"


def create(api: Api, namespace: str, page: dict[str, Object], name: str, priority: str | None = None) -> None:
    """The page's job under another name: it needs all the quota there is."""
    job = copy.deepcopy(page["DistributedTrainingJob"])
    job["metadata"]["name"] = name
    del job["metadata"]["labels"][PRIORITY]
    if priority:
        job["metadata"]["labels"][PRIORITY] = priority
    api.create("dtjobs", namespace, job)


def pods(name: str, attempt: int = 0) -> tuple[str, ...]:
    return tuple(f"{name}-{task}-{attempt}" for task in ("chief-0", "worker-0", "worker-1"))


def run(api: Api, namespace: str, on_nodes: Pods, name: str, attempt: int = 0) -> Object:
    """Wait until the job's pods run."""
    for pod in pods(name, attempt):
        on_nodes.run(pod)
    return wait_phase(api, namespace, "Running", name)


def wait_job(api: Api, namespace: str, name: str, holds: Any) -> Object:
    found = api.wait_for("dtjobs", namespace, name, holds)
    assert found is not None
    return found


def workload(
    api: Api, namespace: str, job: str, holds: Any = lambda found: True, timeout: float = DEFAULT_TIMEOUT
) -> Object:
    """The job's Workload, once this holds."""

    def of_job(found: dict[str, Object]) -> Object | None:
        mine = (one for name, one in found.items() if name.startswith(f"distributedtrainingjob-{job}-"))
        return next(mine, None)

    seen = api.wait("workloads", namespace, lambda found: (mine := of_job(found)) and holds(mine), timeout)
    made = of_job(seen)
    assert made is not None
    return made


def test_the_second_job_waits_for_the_quota_of_the_first(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    create(api, namespace, page, "first")
    run(api, namespace, on_nodes, "first")
    create(api, namespace, page, "second")
    waiting = wait_job(api, namespace, "second", says("Kueue says: couldn't assign flavors to pod set chief"))
    assert waiting["status"]["message"].startswith("queued in team-a, position unknown; needs 3 cpu, 6Gi memory")
    assert waiting["status"]["phase"] == "Suspended"
    assert set(wait_pods(api, namespace, *pods("first"))) == set(pods("first"))
    workload(api, namespace, "first", has("PodsReady", "True"))
    for pod in pods("first"):
        on_nodes.succeed(pod)
    wait_phase(api, namespace, "Succeeded", "first")
    workload(api, namespace, "first", has("Finished", "True", "Succeeded"))
    run(api, namespace, on_nodes, "second")
    assert has("Admitted", "True")(wait_job(api, namespace, "second", has("Admitted", "True")))


def test_a_job_preempted_during_training_saves_and_goes_on(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    create(api, namespace, page, "low")
    before = run(api, namespace, on_nodes, "low")
    on_nodes.hang("low-chief-0-0")  # it saves
    create(api, namespace, page, "urgent", "high")
    api.wait("pods", namespace, lambda found: set(found) == {"low-chief-0-0"})
    wait_job(api, namespace, "low", says("evicted by Kueue (Preempted"))
    assert not has("Admitted", "True")(workload(api, namespace, "urgent"))  # what low holds is still in use
    on_nodes.release()
    run(api, namespace, on_nodes, "urgent")
    wait_job(api, namespace, "low", says("queued in team-a, position unknown; needs 3 cpu"))
    for pod in pods("urgent"):
        on_nodes.succeed(pod)
    wait_phase(api, namespace, "Succeeded", "urgent")
    after = run(api, namespace, on_nodes, "low", 1)
    assert after["status"]["restarts"] == before["status"]["restarts"]
    workload(api, namespace, "low", has("PodsReady", "True"))
    for pod in pods("low", 1):
        on_nodes.succeed(pod)
    workload(api, namespace, "low", has("Finished", "True", "Succeeded"))


def test_a_deactivated_job_is_suspended_until_it_is_active_again(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    create(api, namespace, page, "idle")
    run(api, namespace, on_nodes, "idle")
    name = workload(api, namespace, "idle")["metadata"]["name"]
    api.patch("workloads", namespace, name, {"spec": {"active": False}})
    found = wait_job(api, namespace, "idle", says("is deactivated"))
    assert (found["status"]["phase"], found["status"]["reason"]) == ("Suspended", "Deactivated")
    workload(api, namespace, "idle", has("QuotaReserved", "False"))
    assert api.list("pods", namespace) == []
    api.patch("workloads", namespace, name, {"spec": {"active": True}})
    run(api, namespace, on_nodes, "idle", 1)


def test_jobs_wait_while_kueue_is_away_and_go_on_with_it(
    operator: OperatorProcess, kueue: Kueue, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    create(api, namespace, page, "running")
    run(api, namespace, on_nodes, "running")
    kueue.stop()
    try:
        create(api, namespace, page, "late", "high")
        wait_job(api, namespace, "late", says("queued in team-a"))
        for pod in pods("running"):
            on_nodes.succeed(pod)
        wait_phase(api, namespace, "Succeeded", "running")  # nobody waits for Kueue
    finally:
        kueue.start()
    # The operator has tried ever less often, once a minute in the end.
    workload(api, namespace, "running", has("Finished", "True"), timeout=150)
    workload(api, namespace, "late", has("Admitted", "True"), timeout=150)
    run(api, namespace, on_nodes, "late")


def test_a_queued_job_succeeds_though_the_operator_is_killed_at_every_step(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    operator.kill()
    create(api, namespace, page, "low")
    operator.start()
    workload(api, namespace, "low")
    operator.restart()
    run(api, namespace, on_nodes, "low")
    operator.kill()
    create(api, namespace, page, "urgent", "high")
    operator.start()
    workload(api, namespace, "low", has("Evicted", "True"))
    operator.restart()
    api.wait("pods", namespace, lambda found: not set(pods("low")) & set(found))
    operator.restart()
    run(api, namespace, on_nodes, "urgent")
    operator.kill()
    for pod in pods("urgent"):
        on_nodes.succeed(pod)
    operator.start()
    workload(api, namespace, "urgent", has("Finished", "True", "Succeeded"))
    operator.restart()
    run(api, namespace, on_nodes, "low", 1)


def test_a_stopped_queue_evicts_and_goes_on(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    create(api, namespace, page, "held")
    run(api, namespace, on_nodes, "held")
    api.patch("clusterqueues", None, "research", {"spec": {"stopPolicy": "HoldAndDrain"}})
    wait_job(api, namespace, "held", lambda found: found and found["status"]["phase"] == "Suspended")
    api.wait("pods", namespace, lambda found: not found)
    workload(api, namespace, "held", has("QuotaReserved", "False"))
    api.patch("clusterqueues", None, "research", {"spec": {"stopPolicy": "None"}})
    run(api, namespace, on_nodes, "held", 1)


def test_a_default_queue_does_not_gate_our_pods(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    default = {**page["LocalQueue"], "metadata": {"name": "default", "namespace": namespace}}
    api.create("localqueues", namespace, default)
    create(api, namespace, page, "plain")
    found = api.wait("pods", namespace, lambda found: set(pods("plain")) <= set(found))
    assert not [one for one in found.values() if one["spec"].get("schedulingGates")]
    api.delete("localqueues", namespace, "default")
