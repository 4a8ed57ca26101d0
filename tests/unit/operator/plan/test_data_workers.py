# SPDX-License-Identifier: Apache-2.0
"""Pods of data workers: made after those of the training, replaced each by itself, and as many as the spec says."""

from typing import Any

from dtjob.api.job import Job
from dtjob.api.status.attempts import Attempts
from dtjob.objects.manifest import Manifest
from dtjob.plan import data_workers
from dtjob.plan.lifetime.ending import pods_to_remove
from dtjob.plan.lifetime.suspension import suspend
from dtjob.plan.queueing.quota import pods_left, reclaimable
from dtjob.plan.seen.children import Children
from dtjob.plan.seen.situation import Draft
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.queued import CLAIM


def job(replicas: int = 2, status: dict[str, Any] | None = None) -> Job:
    specs = {"chief": {}, "worker": {"replicas": 1}, "data": {"replicas": replicas}}
    return builders.job(replicaSpecs=specs, status=status)


JOB = job()


def kept(
    job: Job, *data: Manifest, seconds: float = 0, training: dict[str, Any] | None = None
) -> tuple[list[str], Draft]:
    """What is asked for, in words, of a job whose training pods run, and the draft."""
    pods = builders.all_pods(job, training or builders.running())
    draft = builders.draft(job, *pods.values(), *data, now=at(seconds))
    data_workers.keep(draft, data_workers.views_of(draft.situation))
    return builders.in_words(draft.actions), draft


def data(index: int, status: dict[str, Any] | None = None, attempt: int = 0) -> Manifest:
    return builders.pod(JOB, f"data-{index}", status or builders.running(), attempt=attempt)


def test_data_workers_are_made_when_every_pod_of_the_training_is_there():
    chief = builders.pod(JOB, "chief-0", builders.running())
    draft = builders.draft(JOB, chief)
    data_workers.keep(draft, data_workers.views_of(draft.situation))
    assert builders.in_words(draft.actions) == []
    assert kept(JOB, training=builders.unschedulable())[0] == ["create digits-data-0-0", "create digits-data-1-0"]
    assert kept(JOB, data(0), data(1))[0] == []


def test_a_failed_data_worker_is_replaced_alone_and_its_failure_is_told():
    asked, draft = kept(JOB, data(0), data(1, builders.ended(137)))
    assert asked == ["delete digits-data-1-0", "create digits-data-1-1"]
    (event,) = draft.events
    assert (event.type, event.reason) == ("Warning", "DataWorkerRestarting")
    assert event.message.startswith("data-1 ")
    assert event.message.endswith("; another one takes its place")
    assert draft.status == draft.situation.status, "nothing is counted"
    assert draft.status.restarts.total == 0


def test_a_data_worker_that_fails_again_waits_for_the_backoff():
    again = data(1, builders.ended(1), attempt=2)
    asked, draft = kept(JOB, data(0), again)
    assert asked == []
    (due,) = [moment for moment in draft.times if moment is not None]
    assert due > NOW
    wait = (due - NOW).total_seconds()
    assert kept(JOB, data(0), again, seconds=wait)[0] == ["delete digits-data-1-2", "create digits-data-1-3"]


def test_a_deleted_data_worker_has_a_successor_before_it_is_gone():
    assert kept(JOB, data(0), builders.deleting(data(1)))[0] == ["unserve digits-data-1-0", "create digits-data-1-1"]
    assert kept(JOB, data(0))[0] == ["create digits-data-1-0"], "of which nothing is left"
    assert kept(JOB, data(0), builders.deleting(data(1)), data(1, attempt=1))[0] == ["unserve digits-data-1-0"]


def test_their_number_follows_the_spec_while_the_job_runs():
    three = [data(0), data(1), data(2)]
    assert kept(job(1), *three)[0] == ["delete digits-data-1-0", "delete digits-data-2-0"]
    assert kept(job(4), *three)[0] == ["create digits-data-3-0"]


def test_a_queue_gets_no_more_than_it_has_admitted():
    queue = {"name": "team", "workload": "w", "podSets": {"data": {"count": 3}}}
    status = {"queue": queue}
    assert kept(job(5, status), data(0), data(1))[0] == ["create digits-data-2-0"]


def test_a_suspended_and_an_ended_job_give_them_up_and_a_queue_waits_for_that():
    pods = builders.all_pods(JOB, builders.running())
    draft = builders.draft(JOB, *pods.values(), data(0))
    assert data(0)["metadata"]["name"] in builders.names(pods_left(draft.situation))
    suspend(draft)
    assert "delete digits-data-0-0" in builders.in_words(draft.actions)
    ended = builders.situation(JOB, data(0), data(1, builders.ended(1)), phase="Succeeded", completion_time=NOW)
    removed, _ = pods_to_remove(ended)
    assert [one.name for one in removed] == ["digits-data-0-0"]


def test_a_data_worker_that_only_its_sidecar_keeps_goes_when_the_job_has_ended():
    end = {**builders.ended(0), "phase": "Running"}
    sidecar = {"name": "shipper", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    pod = data(0, {**end, "containerStatuses": [*end["containerStatuses"], sidecar]})
    removed, _ = pods_to_remove(builders.situation(JOB, pod, phase="Succeeded", completion_time=NOW))
    assert [one.name for one in removed] == ["digits-data-0-0"]


def test_data_workers_are_no_tasks_of_the_training():
    situation = builders.situation(JOB)
    assert [view.task.id for view in situation.views] == ["chief-0", "worker-0"]
    assert [view.task.id for view in data_workers.views_of(situation)] == ["data-0", "data-1"]


def test_data_workers_are_counted_while_the_number_of_workers_changes():
    specs = {"chief": {}, "worker": {"replicas": 2}, "data": {"replicas": 2}}
    resizing = {"to": 2, "reason": "Scaled", "message": "the spec says so"}
    workers = {"desired": 2, "replicas": 2, "resizing": resizing}
    elastic = builders.job(
        replicaSpecs=specs, elasticPolicy={"maxReplicas": 4}, checkpoint=CLAIM, status={"workers": workers}
    )
    pods = (*builders.all_pods(elastic, builders.running()).values(), data(0), data(1, builders.unschedulable()))
    decided = builders.plan_answered(elastic, Children(pods))
    assert decided.status
    assert decided.status["reason"] == "Resizing"
    assert decided.status["replicaStatuses"]["data"] == {"replicas": 2, "active": 1, "pending": 1}


def test_an_ended_job_gives_the_quota_of_its_data_workers_back():
    pods = data(0), data(1, builders.ended(0))
    ended = builders.situation(JOB, *pods, phase="Succeeded", completion_time=NOW)
    assert reclaimable(ended) == {"chief": 1, "worker": 1, "data": 1}
    assert "data" not in reclaimable(builders.situation(JOB, data(1, builders.ended(0))))


def test_the_attempt_of_a_data_worker_is_no_attempt_of_a_task_whose_status_is_gone():
    chief = builders.pod(JOB, "chief-0", builders.running())
    attempts = builders.situation(JOB, chief, data(0, attempt=5)).status.internal.attempts
    assert attempts == Attempts()
