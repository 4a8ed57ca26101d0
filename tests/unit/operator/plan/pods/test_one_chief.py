# SPDX-License-Identifier: Apache-2.0
"""The chief is never there twice: not from attempt to attempt, and not from one job to the next of its name."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create
from dtjob.plan.plan import plan
from dtjob.plan.pods.one_chief import why_the_chief_waits, writer_left
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

JOB = builders.job()
EARLIER = builders.job(uid="earlier", status=builders.at_attempts({"chief-0": 1}))


def old_chief(status: dict[str, Any] | None) -> Manifest:
    """The chief's pod of a job of the same name that was deleted, at its second attempt."""
    return builders.pod(EARLIER, "chief-0", status, attempt=1)


def created(*pods: Manifest) -> list[str]:
    made = plan(JOB, Children(pods), NOW)
    return [one.name for one in made.actions if isinstance(one, Create) and one.kind == "Pod"]


WORKERS = ["digits-worker-0-0", "digits-worker-1-0"]


@pytest.mark.parametrize(
    "pod",
    [
        old_chief(builders.running()),
        builders.deleting(old_chief(builders.running())),
        old_chief(builders.unschedulable()),
        old_chief({**builders.ended(0), "phase": "Running"}),
        builders.pod(EARLIER, "worker-1", builders.running(), attempt=2),
    ],
    ids=["runs", "saves before it goes", "has yet to start", "kept by a sidecar", "a worker"],
)
def test_a_chief_waits_for_every_pod_of_an_earlier_job_of_its_name(pod: Manifest):
    assert created(pod) == WORKERS


@pytest.mark.parametrize("status", [builders.ended(143), builders.evicted()])
def test_a_pod_of_an_earlier_job_that_has_ended_is_not_waited_for(status: dict[str, Any]):
    assert created(old_chief(status)) == ["digits-chief-0-0", *WORKERS]


def test_an_orphan_is_waited_for_too():
    """`kubectl delete --cascade=orphan` leaves the pods training."""
    orphan = old_chief(builders.running())
    del orphan["metadata"]["ownerReferences"]
    assert created(orphan) == WORKERS


def test_other_kinds_are_not_waited_for():
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default", "uid": "web"}}
    service["metadata"]["labels"] = {labels.JOB_NAME: "digits"}  # type: ignore[index]
    assert created(builders.stored(service)) == ["digits-chief-0-0", *WORKERS]


def test_the_status_names_the_pod_and_says_when_its_node_is_lost():
    old = builders.deleting(old_chief(builders.running()), grace=30)
    made = plan(JOB, Children((old,)), at(1))
    assert made.status is not None
    assert (made.status["phase"], made.status["reason"]) == ("Pending", "WaitingForPods")
    told = "chief-0 waits: pod digits-chief-0-1 on node node-1 has not ended, may write the same checkpoints,"
    assert made.status["message"] == f"{told} and is not this job's but bears its name"
    assert made.look_again_at == at(45)  # nothing else will wake the plan
    late = plan(JOB, Children((old,)), at(45))
    assert late.status is not None
    assert "on node node-1, which does not answer" in late.status["message"]
    assert "out-of-service" in late.status["message"]


def test_a_chief_that_exists_does_not_wait():
    pods = builders.all_pods(JOB)
    situation = builders.situation(JOB, *pods.values(), old_chief(builders.running()))
    assert writer_left(situation) is None
    assert why_the_chief_waits(situation) == ""


def test_a_chief_that_waits_for_its_predecessors_end_says_so():
    """On a lost node that takes until somebody takes the node out of service: the user must know."""
    job = builders.job(status=builders.at_attempts({"chief-0": 1}))
    old = builders.deleting(builders.pod(job, "chief-0", builders.running()))
    words = "chief-0 waits: its earlier pod digits-chief-0-0 on node node-1 has not ended"
    assert why_the_chief_waits(builders.situation(job, old)) == words
    old["status"] = builders.ended(143)
    assert why_the_chief_waits(builders.situation(job, old)) == ""


def test_a_worker_does_not_wait_for_its_earlier_pod():
    job = builders.job(status=builders.at_attempts({"worker-0": 1}))
    pods = builders.all_pods(job)
    pods["worker-0"] = builders.deleting(builders.pod(job, "worker-0", builders.running()))
    assert why_the_chief_waits(builders.situation(job, *pods.values())) == ""
