# SPDX-License-Identifier: Apache-2.0
"""Jobs of elastic workers under the real Kueue: fewer admitted than asked for, and another number while one runs."""

import copy
from collections.abc import Callable

import pytest

from tests.cluster.support.jobs import wait_phase
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_kueue import has
from tests.integrations.kueue.nodes import Pods
from tests.integrations.kueue.test_kueue import create, wait_job, workload
from tools.cluster.rest import Api, Object

pytestmark = pytest.mark.timeout(300, func_only=True)
Step = Callable[[], None]


def create_elastic(api: Api, namespace: str, page: dict[str, Object], name: str, workers: int) -> None:
    """The page's job with so many workers, at least one."""
    found = copy.deepcopy(page)
    spec = found["DistributedTrainingJob"]["spec"]
    spec["elasticPolicy"] = {"minReplicas": 1}
    spec["replicaSpecs"]["worker"] |= {"replicas": workers}
    create(api, namespace, found, name)


def scale(api: Api, namespace: str, name: str, workers: int) -> None:
    """As `kubectl scale` does."""
    api.patch("dtjobs", namespace, name, {"spec": {"replicas": workers}}, "scale")


def quota(api: Api, cores: int) -> None:
    """Let the cluster queue have so many."""
    resources = [{"name": "cpu", "nominalQuota": cores}, {"name": "memory", "nominalQuota": "12Gi"}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "default", "resources": resources}]}
    api.patch("clusterqueues", None, "research", {"spec": {"resourceGroups": [group]}})


def trains_with(workers: int, message: str = "") -> Callable[[Object | None], bool]:
    """A condition for a job: it runs with so many workers, and its status says this of them."""

    def holds(found: Object | None) -> bool:
        status = (found or {}).get("status", {})
        of_workers = status.get("workers", {})
        return (
            (status.get("phase"), of_workers.get("replicas")) == ("Running", workers)
            and "resizing" not in of_workers
            and message in of_workers.get("message", "")
        )

    return holds


def running(api: Api, namespace: str) -> dict[str, str]:
    """The pods that there are: their uids by name."""
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in api.list("pods", namespace)}


def counts(found: Object) -> dict[str, int]:
    """How many pods of each set a Workload asks for."""
    return {one["name"]: one["count"] for one in found["spec"]["podSets"]}


def resumed(found: Object) -> str:
    """Since when the job has not been suspended, which it is too while it waits in its queue."""
    conditions = found["status"]["conditions"]
    since: str = next(one["lastTransitionTime"] for one in conditions if one["type"] == "Suspended")
    return since


def test_fewer_than_asked_for_are_admitted(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    create_elastic(api, namespace, page, "some", 4)
    found = wait_job(api, namespace, "some", trains_with(2, "its queue has admitted no more"))
    assert found["status"]["workers"]["desired"] == 4
    admitted = workload(api, namespace, "some", has("PodsReady", "True"))
    assert [one["count"] for one in admitted["status"]["admission"]["podSetAssignments"]] == [1, 2]
    assert len(running(api, namespace)) == 3
    operator.restart()
    assert trains_with(2)(wait_job(api, namespace, "some", trains_with(2)))


def _grows(api: Api, namespace: str, page: dict[str, Object], between: Step) -> None:
    create_elastic(api, namespace, page, "grows", 2)
    began = resumed(wait_job(api, namespace, "grows", trains_with(2)))
    before = running(api, namespace)
    between()
    scale(api, namespace, "grows", 3)
    wait_job(api, namespace, "grows", trains_with(2, "3 workers are asked for in queue team-a; Kueue says: couldn't"))
    assert running(api, namespace) == before
    between()
    assert {tuple(counts(one).values()) for one in api.list("workloads", namespace)} == {(1, 2), (1, 3)}
    quota(api, 4)
    between()
    assert resumed(wait_job(api, namespace, "grows", trains_with(3))) == began
    api.wait("workloads", namespace, lambda found: len(found) == 1)
    left = workload(api, namespace, "grows", has("PodsReady", "True"))
    assert (counts(left), has("Admitted", "True")(left)) == ({"chief": 1, "worker": 3}, True)


def test_a_job_trains_on_until_more_workers_are_admitted(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object]
) -> None:
    _grows(api, namespace, page, lambda: None)


def test_the_operator_is_killed_at_every_step_of_growing(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object]
) -> None:
    _grows(api, namespace, page, operator.restart)


def test_fewer_workers_give_their_quota_to_others(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    create_elastic(api, namespace, page, "shrinks", 2)
    began = resumed(wait_job(api, namespace, "shrinks", trains_with(2)))
    before = workload(api, namespace, "shrinks")["metadata"]["uid"]
    small = copy.deepcopy(page)
    del small["DistributedTrainingJob"]["spec"]["replicaSpecs"]["worker"]
    small["DistributedTrainingJob"]["spec"]["strategy"] = "Default"
    create(api, namespace, small, "small")
    workload(api, namespace, "small", has("QuotaReserved", "False"))
    scale(api, namespace, "shrinks", 1)
    assert resumed(wait_job(api, namespace, "shrinks", trains_with(1))) == began
    wait_phase(api, namespace, "Running", "small")
    after = workload(api, namespace, "shrinks")
    assert (after["metadata"]["uid"], counts(after)) == (before, {"chief": 1, "worker": 1})


def test_a_job_preempted_while_it_waits_for_more_workers_keeps_its_place(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    create_elastic(api, namespace, page, "grows", 2)
    wait_job(api, namespace, "grows", trains_with(2))
    before = workload(api, namespace, "grows")["metadata"]["uid"]
    scale(api, namespace, "grows", 3)
    api.wait("workloads", namespace, lambda found: len(found) == 2)
    create(api, namespace, page, "urgent", "high")
    wait_phase(api, namespace, "Running", "urgent")
    api.wait("workloads", namespace, lambda found: len(found) == 2)
    waiting = workload(api, namespace, "grows", lambda found: counts(found)["worker"] == 3)
    assert waiting["metadata"]["uid"] == before  # it is in the queue since it first was
    assert waiting["spec"]["podSets"][1]["minCount"] == 1
    for pod in ("chief-0", "worker-0", "worker-1"):
        on_nodes.succeed(f"urgent-{pod}-0")
    wait_phase(api, namespace, "Running", "grows")  # with as many as were free when the first of these cores was


def test_workers_that_are_asked_for_and_withdrawn_change_nothing(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object]
) -> None:
    create_elastic(api, namespace, page, "steady", 2)
    wait_job(api, namespace, "steady", trains_with(2))
    before = running(api, namespace)
    for wanted in (3, 4):  # the second is written into what the first asked with
        scale(api, namespace, "steady", wanted)
        api.wait(
            "workloads",
            namespace,
            lambda found, wanted=wanted: sorted(counts(one)["worker"] for one in found.values()) == [2, wanted],
        )
    scale(api, namespace, "steady", 2)
    api.wait("workloads", namespace, lambda found: len(found) == 1)
    wait_job(api, namespace, "steady", trains_with(2))
    assert running(api, namespace) == before
