# SPDX-License-Identifier: Apache-2.0
"""What is charged to a job, from what an API server really has of its pods: deletions and conditions come from several
sides, on pods that the operator has replaced too."""

from collections.abc import Callable

from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

GROUP = ("chief-0", "worker-0", "worker-1")


def counted(causes: dict[str, int], charged: int) -> Callable[[Object | None], bool]:
    """A condition for `Api.wait_for` on a job: its restarts by cause, and how many of them are charged."""

    def holds(found: Object | None) -> bool:
        status = (found or {}).get("status", {})
        incident = status.get("internal", {}).get("incident") or {}
        return (status["restarts"].get("causes"), incident.get("charged", 0)) == (causes, charged)

    return holds


def image_only(api: Api, namespace: str, name: str, restarts: int) -> None:
    """A running group of an image that knows nothing of dtjob."""
    api.create("dtjobs", namespace, job(name, program=False, failurePolicy={"maxRestartsWithoutProgress": restarts}))
    wait_phase(api, namespace, "Running", name)


def first(name: str) -> list[str]:
    """The group's first pods. All of them hang, as the operator may tell the second to end before the test has it
    fail."""
    return [f"{name}-{task}-0" for task in GROUP]


def test_a_drain_is_not_charged_to_a_group_without_supervisors(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """The drained pod's process has ended, and its node says so last."""
    image_only(api, namespace, "drained", restarts=0)
    auto_kubelet.hang(*first("drained"))
    auto_kubelet.drain("drained-worker-1-0")
    for peer in ("drained-chief-0-0", "drained-worker-0-0"):
        auto_kubelet.exit(peer, 1, message="UnavailableError: Collective ops is aborted")
    api.wait_for("pods", namespace, "drained-worker-1-1", lambda pod: pod is not None)
    auto_kubelet.release()
    wait_pods(api, namespace, *(f"drained-{task}-1" for task in GROUP))
    found = wait_phase(api, namespace, "Running", "drained")
    assert counted({"Disruption": 1}, 0)(found), found["status"]
    assert found["status"]["lastFailure"]["pod"] == "drained-worker-1-0"


def test_a_lost_node_that_is_noticed_after_the_restart_gives_the_charge_back(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    image_only(api, namespace, "lost", restarts=1)
    auto_kubelet.hang(*first("lost"))
    for peer in ("lost-chief-0-0", "lost-worker-0-0"):
        auto_kubelet.exit(peer, 1, message="UnavailableError: unhealthy (stopped sending heartbeats)")
    api.wait_for("dtjobs", namespace, "lost", counted({"Error": 1}, 1))
    api.wait_for("pods", namespace, "lost-worker-1-1", lambda pod: pod is not None)
    auto_kubelet.evict_from_lost_node("lost-worker-1-0")
    found = api.wait_for("dtjobs", namespace, "lost", counted({"Disruption": 1}, 0))
    assert found is not None
    assert found["status"]["lastFailure"]["message"] == "was disrupted (DeletionByTaintManager)"
    auto_kubelet.release()


def test_a_job_does_not_fail_over_a_lost_node_before_that_is_noticed(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    image_only(api, namespace, "late", restarts=0)
    auto_kubelet.hang(*first("late"))
    for peer in ("late-chief-0-0", "late-worker-0-0"):
        auto_kubelet.exit(peer, 1, message="UnavailableError: unhealthy (stopped sending heartbeats)")
    waits = api.wait_for(
        "dtjobs",
        namespace,
        "late",
        lambda found: found and found["status"].get("lastFailure", {}).get("exitCode") == 1,
    )
    assert waits is not None
    assert waits["status"]["phase"] == "Restarting"
    assert waits["status"]["reason"] == "Error"
    auto_kubelet.miss_node("late-worker-1-0")
    api.wait_for("pods", namespace, "late-worker-1-1", lambda pod: pod is not None)
    auto_kubelet.release()
    found = wait_phase(api, namespace, "Running", "late")
    assert counted({"Disruption": 1}, 0)(found), found["status"]
    assert found["status"]["lastFailure"]["message"] == "is on a node that does not answer"


def test_a_pod_that_outgrows_its_own_storage_is_charged_and_the_limit_named(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    policy = {"maxRestartsWithoutProgress": 1, "backoff": {"initialSeconds": 0, "maxSeconds": 0}}
    api.create("dtjobs", namespace, job("full", failurePolicy=policy))
    wait_phase(api, namespace, "Running", "full")
    limit = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". '
    for attempt in range(2):
        name = f"full-worker-0-{attempt}"
        api.wait_for("pods", namespace, name, lambda pod: pod and pod["status"]["phase"] == "Running")
        auto_kubelet.exceed_storage(name, limit)
    found = wait_phase(api, namespace, "Failed", "full")
    assert counted({"StorageLimitExceeded": 1}, 1)(found), found["status"]
    assert found["status"]["reason"] == "MaxRestartsExceeded"
    assert 'exceeds the limit "1Gi"' in found["status"]["message"]
