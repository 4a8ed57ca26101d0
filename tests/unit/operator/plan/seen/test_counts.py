# SPDX-License-Identifier: Apache-2.0
"""The counts of a job's tasks."""

from __future__ import annotations

from dtjob.api.status.replica_status import ReplicaStatus
from dtjob.api.status.status import Status
from dtjob.plan.seen.counts import count_tasks, replica_statuses
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at


def test_tasks_are_counted_by_role_and_state():
    job = builders.job(workers=3)
    worker = {
        0: builders.pod(job, "worker-0", builders.running()),
        1: builders.pod(job, "worker-1", builders.out_of_memory()),
    }
    chief = builders.pod(job, "chief-0", builders.ended(0))
    status = count_tasks(Status(), builders.views(job, chief, *worker.values()))
    assert status.ready == "2/4"
    assert status.replica_statuses == {
        "chief": ReplicaStatus(replicas=1, succeeded=1),
        "worker": ReplicaStatus(replicas=3, active=1, failed=1),
    }


def test_a_lost_pod_counts_as_failed_and_a_waiting_one_as_pending():
    job = builders.job("ParameterServer", workers=1, ps=1)
    lost = builders.deleting(builders.pod(job, "ps-0", builders.running()), NOW, grace=30)
    pods = builders.pod(job, "chief-0", builders.running()), builders.pod(job, "worker-0", builders.unschedulable())
    assert replica_statuses(builders.views(job, *pods, lost, now=at(45))) == {
        "chief": ReplicaStatus(replicas=1, active=1),
        "worker": ReplicaStatus(replicas=1, pending=1),
        "ps": ReplicaStatus(replicas=1, failed=1),
    }
