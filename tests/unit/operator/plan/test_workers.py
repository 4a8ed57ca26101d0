"""`status.workers`: what is read is written again, and the job that goes by it."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from dtjob.objects import topology
from dtjob.plan.workers import Resizing, Workers, sized, workers_of
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

COUNT = st.integers(1, 4000)
TIME = st.none() | st.integers(0, 10**6).map(lambda seconds: NOW + timedelta(seconds=seconds))


@given(
    st.builds(
        Workers,
        desired=COUNT,
        replicas=COUNT,
        reason=st.text(max_size=5),
        message=st.text(max_size=5),
        since=TIME,
        resizing=st.none() | st.builds(Resizing, COUNT, st.text(max_size=5), st.text(max_size=5)),
        unschedulable_since=TIME,
        adjusted_at=TIME,
        selector=st.text(max_size=5),
        others=st.dictionaries(st.just("later"), st.integers()),
    )
)
def test_reading_and_writing_lose_nothing(workers: Workers) -> None:
    assert Workers.from_json(workers.to_json()) == workers


def test_a_block_of_another_form_is_read_all_the_same() -> None:
    assert Workers.from_json({"later": 1}).replicas == 1
    assert Workers.from_json({"desired": 3, "resizing": {"later": 1}}).replicas == 3


def test_a_changed_count_is_news() -> None:
    job = builders.job(replicaSpecs={"chief": {}, "worker": {"replicas": 5}}, elasticPolicy={"minReplicas": 1})
    found = workers_of(job, Workers(4, 2, adjusted_at=NOW))
    assert found is not None
    assert (found.desired, found.replicas, found.adjusted_at) == (5, 2, None)
    assert workers_of(builders.job("Default"), None) is None
    assert workers_of(builders.job(), None) is None


def test_the_job_has_the_tasks_of_its_group() -> None:
    job = builders.job(workers=5, evaluator=True)
    made = sized(job, Workers(5, 2))
    assert [task.id for task in topology.tasks(made)] == ["chief-0", "worker-0", "worker-1", "evaluator-0"]
    assert topology.cluster_hash(made) == topology.cluster_hash(builders.job(workers=2, evaluator=True))
    assert len(topology.tasks(job)) == 7
    assert sized(job, None) is job
