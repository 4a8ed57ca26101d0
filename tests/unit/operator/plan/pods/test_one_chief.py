# SPDX-License-Identifier: Apache-2.0
"""The chief is never there twice: not from attempt to attempt, and not from one job to the next of its name."""

from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Delete
from dtjob.plan.plan import plan
from dtjob.plan.pods import why_the_chief_waits, writer_left
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

JOB = builders.job()
EARLIER = builders.job(uid="earlier", status=builders.at_attempts({"chief-0": 1}))


def old_chief(status: dict[str, Any] | None) -> Manifest:
    """The chief's pod of a job of the same name that was deleted, at its second attempt."""
    return builders.pod(EARLIER, "chief-0", status, attempt=1)


WORKERS = ["digits-worker-0-0", "digits-worker-1-0"]


def orphan() -> Manifest:
    """`kubectl delete --cascade=orphan` leaves the pods training."""
    pod = old_chief(builders.running())
    del pod["metadata"]["ownerReferences"]
    return pod


SERVICE = builders.stored(builders.stranger("Service", "web"))


@pytest.mark.parametrize(
    ("there", "waits"),
    [
        pytest.param(old_chief(builders.running()), True, id="runs"),
        pytest.param(builders.deleting(old_chief(builders.running())), True, id="saves before it goes"),
        pytest.param(old_chief(builders.unschedulable()), True, id="has yet to start"),
        pytest.param(old_chief({**builders.ended(0), "phase": "Running"}), True, id="kept by a sidecar"),
        pytest.param(builders.pod(EARLIER, "worker-1", builders.running(), attempt=2), True, id="a worker"),
        pytest.param(orphan(), True, id="an orphan"),
        pytest.param(old_chief(builders.ended(143)), False, id="has ended"),
        pytest.param(old_chief(builders.evicted()), False, id="was evicted"),
        pytest.param(SERVICE, False, id="another kind"),
    ],
)
def test_a_chief_waits_for_every_pod_of_an_earlier_job_of_its_name_that_has_not_ended(there: Manifest, waits: bool):
    assert builders.pods_made(plan(JOB, Children((there,)), NOW)) == (
        WORKERS if waits else ["digits-chief-0-0", *WORKERS]
    )


def test_the_status_says_in_time_that_the_node_of_the_pod_is_lost():
    old = builders.deleting(old_chief(builders.running()), grace=30)
    made = plan(JOB, Children((old,)), at(1))
    assert (made.status["phase"], made.status["reason"]) == ("Pending", "WaitingForPods")
    assert made.look_again_at == at(45)  # nothing else will wake the plan


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


def settled(job: Job, pods: dict[str, Manifest]) -> Job:
    """The job after a plan has seen these pods."""
    return builders.with_status(job, plan(job, Children(tuple(pods.values())), NOW).status or {})


@pytest.mark.parametrize("role", ["chief-0", "worker-1", "evaluator-0"])
def test_a_pod_that_is_seen_no_more_is_asked_for_first(role: str):
    job = builders.job(evaluator=True)
    pods = builders.all_pods(job)
    job = settled(job, pods)
    del pods[role]
    seen = Children(tuple(pods.values()))
    assert builders.asked(job, seen, at(1)) == (f"digits-{role}-0",)
    gone = plan(job, builders.not_there(seen, f"digits-{role}-0"), at(1))
    assert builders.pods_made(gone) == [f"digits-{role}-1"]


def test_an_unlisted_pod_is_looked_up_before_its_job_is_suspended():
    """It may be running, and would keep its node though the job says that it has no pods."""
    job = builders.job()
    pods = builders.all_pods(job)
    job = settled(job, pods)
    job = builders.suspending(job)
    unlisted = pods.pop("worker-1")
    seen = Children(tuple(pods.values()))
    assert builders.asked(job, seen, at(1)) == ("digits-worker-1-0",)
    del unlisted["metadata"]["labels"][labels.JOB_NAME]
    found = plan(job, Children((*pods.values(), unlisted)), at(1))
    deleted = sorted(one.name for one in found.actions if isinstance(one, Delete))
    assert deleted == ["digits-chief-0-0", *WORKERS]
    gone = plan(job, builders.not_there(seen, "digits-worker-1-0"), at(1))
    assert gone.status["phase"] == "Suspended"
    suspended = builders.with_status(job, gone.status)
    assert builders.asked(suspended, Children(), at(2)) == ()


def test_a_pod_that_was_never_made_is_not_asked_for():
    job = builders.job()
    assert builders.asked(job, Children(), NOW) == ()


def test_a_finished_task_is_not_asked_for():
    job = builders.job(program=False)
    pods = builders.all_pods(job, worker_0=builders.ended(0))
    job = settled(job, pods)
    del pods["worker-0"]
    assert builders.asked(job, Children(tuple(pods.values())), at(1)) == ()


@pytest.mark.parametrize(
    ("attempt", "seen", "gone", "asked"),
    [
        (0, (), (), ()),
        (1, (), (), ("digits-chief-0-0",)),
        (1, (), ("digits-chief-0-0",), ()),
        (1, (0,), (), ()),
        (3, (2,), (), ()),  # it was made, so those before it had ended
        (3, (1,), (), ("digits-chief-0-2",)),
        (9, (), (), tuple(f"digits-chief-0-{n}" for n in (8, 7, 6, 5, 4))),
    ],
)
def test_earlier_pods_of_the_chief_are_looked_up_before_a_new_one_is_created(attempt, seen, gone, asked):
    job = builders.job(status=builders.remembered({"chief-0": attempt}, allCreated=False))
    pods = builders.all_pods(job, chief_0=None)
    old = [builders.pod(job, "chief-0", builders.ended(1), attempt=number) for number in seen]
    children = builders.not_there(Children((*pods.values(), *old)), *gone)
    assert builders.asked(job, children) == asked
    assert asked or builders.pods_made(plan(job, children, NOW)) == [f"digits-chief-0-{attempt}"]


@pytest.mark.parametrize(
    "attempts", [{"chief-0": 1}, {"worker-0": 1}], ids=["its predecessor still saves", "it is there"]
)
def test_no_earlier_chief_is_looked_up_while_no_chief_is_to_be_created(attempts: dict[str, int]):
    job = builders.job(status=builders.remembered(attempts, allCreated=False))
    pods = builders.all_pods(job)
    pods["chief-0"] = builders.pod(job, "chief-0", builders.running())
    assert builders.asked(job, Children(tuple(pods.values())), NOW) == ()
