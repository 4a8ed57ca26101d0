"""What is charged to a job, from what an API server really has of its pods: deletions and conditions come from several
sides, on pods that the operator has replaced too."""

from __future__ import annotations

from collections.abc import Callable

from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object


def counted(causes: dict[str, int], charged: int) -> Callable[[Object | None], bool]:
    """A condition for `Api.wait_for` on a job: its restarts by cause, and how many of them are charged."""

    def holds(found: Object | None) -> bool:
        status = (found or {}).get("status", {})
        incident = status.get("incident") or {"charged": 0}
        return (status["restarts"].get("causes"), incident["charged"]) == (causes, charged)

    return holds


def test_a_pod_that_outgrows_its_own_storage_is_charged_and_the_limit_named(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    policy = {"maxRestarts": 1, "backoff": {"initialSeconds": 0, "maxSeconds": 0}}
    api.create("dtjobs", namespace, job("full", failurePolicy=policy))
    wait_phase(api, namespace, "Running", "full")
    limit = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". '
    for attempt in range(2):
        name = f"full-worker-0-{attempt}"
        api.wait_for("pods", namespace, name, lambda pod: pod and pod["status"]["phase"] == "Running")
        auto_kubelet.exceed_storage(name, limit)
    found = wait_phase(api, namespace, "Failed", "full")
    assert counted({"StorageLimitExceeded": 1}, 1)(found), found["status"]
    assert found["status"]["message"] == (
        'worker-0 was evicted: Usage of EmptyDir volume "scratch" exceeds the limit "1Gi"; '
        "failurePolicy.maxRestarts (1) is used up"
    )
