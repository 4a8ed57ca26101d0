# SPDX-License-Identifier: Apache-2.0
"""The situation: observed once, and seen again only where a new attempt changes what is seen."""

from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.api.status.workers import Resizing, Workers
from dtjob.objects import topology
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Delete
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from dtjob.plan.seen.situation import Situation, sized, workers_of
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at


def test_the_status_has_what_was_reported_and_the_written_one_has_not():
    job = builders.with_status(builders.job(), {"checkpoint": {"step": 10}, "observedGeneration": 0})
    seen = Situation.of(job, Children((), {"chief-0": {"step": 30, "checkpoint": {"step": 20}}}), NOW)
    assert (seen.written.checkpoint_step, seen.status.checkpoint_step) == (10, 20)
    assert (seen.written.observed_generation, seen.status.observed_generation) == (0, 1)
    assert seen.reports["chief-0"]["step"] == 30


def test_a_job_without_a_status_began_with_its_first_pod():
    job = builders.job()
    pods = [builders.pod(job, "chief-0", created=at(2)), builders.pod(job, "worker-0", created=at(1))]
    assert builders.situation(job, *pods, now=at(60)).status.start_time == at(1)


CHIEF_FINISHED = [{"role": "chief", "attempt": 0, "indexes": "0"}]
OF_A_NEWER_OPERATOR = {"byRole": {"worker": 2}}


@pytest.mark.parametrize(
    "internal",
    [
        None,
        {"attempts": None, "finished": []},
        {"attempts": None, "finished": CHIEF_FINISHED},
        {"attempts": OF_A_NEWER_OPERATOR, "finished": []},
        {"attempts": OF_A_NEWER_OPERATOR, "finished": CHIEF_FINISHED},
    ],
    ids=["all is lost", "they are lost", "they are lost after the chief", "they are newer", "they are newer after it"],
)
def test_pods_tell_their_attempts_if_the_status_does_not_and_none_is_made_twice(internal: dict[str, Any] | None):
    """As of a job from a backup without `internal`, or after the rollback of an operator that writes them in another
    way."""
    job = builders.job(workers=3, status=builders.at_attempts({"chief-0": 3, "worker-0": 2, "worker-1": 1}))
    pods = builders.all_pods(job, worker_2=None)
    old = builders.pod(job, "worker-0", builders.ended(1), attempt=1)
    children = Children((*pods.values(), old))
    status = plan(job, children, NOW).status or {}
    remembered = status.pop("internal")
    kept = {} if internal is None else {"internal": {**remembered, **internal}}
    made = builders.plan_answered(builders.with_status(job, {**status, **kept}), children, at(5))
    assert builders.pods_made(made) == ["digits-worker-2-3"]
    assert [one.name for one in made.actions if isinstance(one, Delete)] == ["digits-worker-0-1"]
    exceptions = {"chief-0": 3, "worker-0": 2, "worker-1": 1}
    assert made.status["internal"]["attempts"] == {"exceptions": exceptions, "others": 3}
    assert "finished" not in made.status["internal"]
    assert made.status["restarts"] == {"total": 0}


def test_the_public_status_stays_if_the_internal_status_is_lost():
    job = builders.job(checkpoint={"storage": {"volume": {"persistentVolumeClaim": {"claimName": "a"}}}})
    shared = [builders.stored(one) for one in shared_objects(job)]
    pods = builders.all_pods(job, worker_0=builders.ended(0))
    report = {"attempt": 0, "incarnation": 0, "state": "training", "step": 30, "checkpoint": {"step": 20}}
    children = Children((*pods.values(), *shared), {"chief-0": {**report, "restoredStep": 0}})
    before = plan(job, children, NOW).status or {}
    lost = builders.forgotten(builders.with_status(job, before))
    after = builders.plan_answered(lost, children, at(5))
    assert after.actions == ()
    assert after.events == ()
    assert after.status is not None
    public = before.keys() - {"internal", "goodput"}
    assert {name: after.status.get(name) for name in public} == {name: before[name] for name in public}
    assert after.status["internal"]["finished"] == before["internal"]["finished"]


def test_every_job_with_workers_says_how_many_so_that_scale_never_says_none() -> None:
    found = workers_of(builders.job(workers=3), None)
    assert (found.desired, found.replicas, bool(found.selector)) == (3, 3, True)
    assert workers_of(builders.job("Default"), None) is None


def test_a_job_that_is_not_elastic_has_as_many_as_its_spec_says() -> None:
    """The spec of a suspended job may change."""
    found = workers_of(builders.job(workers=5), Workers(desired=2, replicas=2))
    assert (found.desired, found.replicas) == (5, 5)


ELASTIC = builders.job(replicaSpecs={"chief": {}, "worker": {"replicas": 5}}, elasticPolicy={"minReplicas": 1})


def test_a_changed_count_is_news() -> None:
    found = workers_of(ELASTIC, Workers(desired=4, replicas=2, adjusted_time=NOW))
    assert (found.desired, found.replicas, found.adjusted_time) == (5, 2, None)


def test_only_elastic_jobs_and_jobs_being_resized_change_their_workers() -> None:
    def changes(job: Job, resizing: Resizing | None = None) -> bool:
        return builders.situation(job, workers=Workers(desired=2, replicas=2, resizing=resizing)).changing is not None

    assert changes(ELASTIC)
    assert not changes(builders.job())
    assert changes(builders.job(), Resizing(to=3, reason="Room", message=""))
    assert not changes(builders.job("Default"))


def test_the_job_has_the_tasks_of_its_group() -> None:
    job = builders.job(workers=5, evaluator=True)
    made = sized(job, Workers(desired=5, replicas=2))
    assert [task.id for task in topology.tasks(made)] == ["chief-0", "worker-0", "worker-1", "evaluator-0"]
    assert topology.cluster_hash(made) == topology.cluster_hash(builders.job(workers=2, evaluator=True))
    assert len(topology.tasks(job)) == 7
    assert sized(job, None) is job


def elastic(workers: int, strategy: str) -> Job:
    roles = {"chief": {}, "worker": {"replicas": workers}}
    roles |= {"ps": {"replicas": 1}} if strategy == "ParameterServer" else {}
    return builders.job(strategy, replicaSpecs=roles, elasticPolicy={"minReplicas": 1})


@pytest.mark.parametrize("strategy", ["MultiWorkerMirrored", "ParameterServer"])
@pytest.mark.parametrize("wanted", [1, 2, 3])
@pytest.mark.parametrize(
    "there", [("chief-0",), ("worker-0",), ("chief-0", "worker-1"), ("chief-0", "worker-0", "worker-1")]
)
def test_a_group_whose_status_is_lost_ends_before_one_of_the_size_in_the_spec_begins(
    strategy: str, wanted: int, there: tuple[str, ...]
) -> None:
    pods = [builders.pod(elastic(2, strategy), task, builders.running(), attempt=3) for task in there]
    job, made = builders.looked(elastic(wanted, strategy), Children(tuple(pods)), at(5))
    assert sorted(one.name for one in made.actions if isinstance(one, Delete)) == sorted(builders.names(pods))
    assert builders.pods_made(made) == []
    _, begun = builders.looked(job, Children(), at(6))
    tasks = [one.id for one in topology.tasks(elastic(wanted, strategy))]
    assert builders.pods_made(begun) == [f"digits-{task}-4" for task in tasks]
