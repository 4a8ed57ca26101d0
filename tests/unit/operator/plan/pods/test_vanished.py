# SPDX-License-Identifier: Apache-2.0
"""Pods that the watch has lost sight of are asked for by name before anything is done about them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dtjob.api.job import Job
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create, Delete, Plan
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at


def created(made: Plan) -> list[str]:
    return [one.name for one in made.actions if isinstance(one, Create) and one.kind == "Pod"]


def without(pod: Manifest, *names: str) -> Manifest:
    """The pod after somebody removed labels."""
    for name in names:
        del pod["metadata"]["labels"][name]
    return pod


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
    gone = plan(job, replace(seen, gone=frozenset({f"digits-{role}-0"})), at(1))
    assert created(gone) == [f"digits-{role}-1"]


def test_an_unseen_pod_is_looked_up_before_its_job_is_suspended():
    """It may be running, and would keep its node though the job says that it has no pods."""
    job = builders.job()
    pods = builders.all_pods(job)
    job = settled(job, pods)
    job = job.model_copy(update={"spec": job.spec.model_copy(update={"suspend": True})})
    unseen = pods.pop("worker-1")
    seen = Children(tuple(pods.values()))
    assert builders.asked(job, seen, at(1)) == ("digits-worker-1-0",)
    found = plan(job, Children((*pods.values(), without(unseen, labels.JOB_NAME))), at(1))
    assert sorted(one.name for one in found.actions if isinstance(one, Delete)) == [
        "digits-chief-0-0",
        "digits-worker-0-0",
        "digits-worker-1-0",
    ]
    gone = plan(job, replace(seen, gone=frozenset({"digits-worker-1-0"})), at(1))
    assert gone.status is not None
    assert gone.status["phase"] == "Suspended"
    suspended = builders.with_status(job, gone.status)
    assert builders.asked(suspended, Children(), at(2)) == ()


def test_a_pod_that_was_never_made_is_not_asked_for():
    job = builders.job()
    assert builders.asked(job, Children(), NOW) == ()


def test_a_finished_task_is_not_asked_for():
    job = builders.job(program=False)
    pods = builders.all_pods(job)
    pods["worker-0"]["status"] = builders.ended(0)
    job = settled(job, pods)
    del pods["worker-0"]
    assert builders.asked(job, Children(tuple(pods.values())), at(1)) == ()


@pytest.mark.parametrize("label", [labels.ROLE, labels.INDEX, labels.ATTEMPT, labels.JOB_NAME])
def test_a_chief_that_lost_a_label_is_the_chief_still(label: str):
    """Whether the watch still tells of it, or the API server did when it was asked."""
    job = builders.job()
    pods = builders.all_pods(job)
    job = settled(job, pods)
    without(pods["chief-0"], label)
    made = plan(job, Children(tuple(pods.values())), at(1))
    assert created(made) == []
    assert made.status is None


def test_a_pod_with_the_labels_of_another_task_stays_a_pod_of_its_own_task():
    job = builders.job()
    pods = builders.all_pods(job)
    job = settled(job, pods)
    pods["chief-0"]["metadata"]["labels"] |= {labels.ROLE: "worker", labels.INDEX: "1", labels.ATTEMPT: "7"}
    assert created(plan(job, Children(tuple(pods.values())), at(1))) == []


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
def test_earlier_pods_of_the_chief_are_looked_up_before_a_new_one_is_created(
    attempt: int, seen: tuple[int, ...], gone: tuple[str, ...], asked: tuple[str, ...]
):
    job = builders.job(status=builders.remembered({"chief-0": attempt}, allCreated=False))
    pods = builders.all_pods(job)
    del pods["chief-0"]
    old = [builders.pod(job, "chief-0", builders.ended(1), attempt=number) for number in seen]
    children = Children((*pods.values(), *old), gone=frozenset(gone))
    assert builders.asked(job, children) == asked
    assert asked or created(plan(job, children, NOW)) == [f"digits-chief-0-{attempt}"]


@pytest.mark.parametrize(
    "attempts",
    [
        {"chief-0": 1},
        {"worker-0": 1},
    ],
    ids=["its predecessor still saves", "it is there"],
)
def test_no_earlier_chief_is_looked_up_while_no_chief_is_to_be_created(attempts: dict[str, int]):
    job = builders.job(status=builders.remembered(attempts, allCreated=False))
    pods = builders.all_pods(job)
    pods["chief-0"] = builders.pod(job, "chief-0", builders.running())
    assert builders.asked(job, Children(tuple(pods.values())), NOW) == ()
