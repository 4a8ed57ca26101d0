# SPDX-License-Identifier: Apache-2.0
"""How many workers a job has, and the job that goes by it."""

from __future__ import annotations

from dtjob.api.status.workers import Resizing, Workers
from dtjob.objects import topology
from dtjob.plan.seen.workers import as_it_is, changing, sized, workers_of
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

ELASTIC = builders.job(replicaSpecs={"chief": {}, "worker": {"replicas": 5}}, elasticPolicy={"minReplicas": 1})


def test_a_changed_count_is_news() -> None:
    found = workers_of(ELASTIC, Workers(desired=4, replicas=2, adjusted_time=NOW))
    assert found is not None
    assert (found.desired, found.replicas, found.adjusted_time) == (5, 2, None)


def test_every_job_with_workers_says_how_many_so_that_scale_never_says_none() -> None:
    found = workers_of(builders.job(workers=3), None)
    assert found is not None
    assert (found.desired, found.replicas, bool(found.selector)) == (3, 3, True)
    assert workers_of(builders.job("Default"), None) is None


def test_a_job_that_is_not_elastic_has_as_many_as_its_spec_says() -> None:
    """The spec of a suspended job may change."""
    found = workers_of(builders.job(workers=5), Workers(desired=2, replicas=2))
    assert found is not None
    assert (found.desired, found.replicas) == (5, 5)


def test_only_elastic_jobs_and_jobs_being_resized_change_their_workers() -> None:
    two, resizing = Workers(desired=2, replicas=2), Resizing(to=3, reason="Room", message="")
    assert changing(ELASTIC, two) is two
    assert changing(builders.job(), two) is None
    assert changing(builders.job(), busy := two.but(resizing=resizing)) is busy
    assert changing(builders.job("Default"), two) is None


def test_the_job_has_the_tasks_of_its_group() -> None:
    job = builders.job(workers=5, evaluator=True)
    made = sized(job, Workers(desired=5, replicas=2))
    assert [task.id for task in topology.tasks(made)] == ["chief-0", "worker-0", "worker-1", "evaluator-0"]
    assert topology.cluster_hash(made) == topology.cluster_hash(builders.job(workers=2, evaluator=True))
    assert len(topology.tasks(job)) == 7
    assert sized(job, None) is job


def test_the_number_of_workers_is_read_from_the_status() -> None:
    written = builders.with_status(ELASTIC, {"workers": {"desired": 5, "replicas": 2}})
    assert as_it_is(written).spec.replica_specs.worker.replicas == 2  # type: ignore[union-attr]
    assert as_it_is(ELASTIC) is ELASTIC
    assert as_it_is(builders.with_status(ELASTIC, {"workers": "many"})).spec.replica_specs == ELASTIC.spec.replica_specs
