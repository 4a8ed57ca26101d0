# SPDX-License-Identifier: Apache-2.0
"""The reconciler over a simulated cluster with Kueue: what a queue and its label do not hold up."""

import asyncio
from typing import Any

import pytest

from dtjob.api.job import KIND
from dtjob.controller.cluster import ClusterError, Stale
from dtjob.controller.pace.pace import LONGEST_FIRST_SECONDS, MUCH
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.objects import kueue
from tests.unit.operator import builders
from tests.unit.operator.controller.worlds import all_run
from tests.unit.operator.queued import CLAIM, QUEUE, queued_job
from tests.unit.operator.simulation.operator import World


def test_a_kueue_that_does_not_answer_holds_no_pod_up() -> None:
    with World(queued_job(checkpoint=CLAIM)) as made:
        made.run(0.05)
        (name,) = made.kueue.names()
        away = ClusterError("failed calling webhook vworkload.kb.io")
        made.cluster.failing = {f"patch {name}: its pods have changed": away}
        made.run(5)
        all_run(made)
        made.run(5)
        assert made.job.status["phase"] == "Running"
        workload = made.kueue.workload(name)
        assert workload is not None
        assert not workload.condition("PodsReady")
        made.cluster.failing = {}
        made.run(60)
        workload = made.kueue.workload(name)
        assert workload is not None
        assert workload.holds("PodsReady")


def test_a_queue_label_added_before_a_running_jobs_first_status_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkQueue, "at_hand", MUCH + 1)  # so that its first status waits
    with World(builders.job(workers=1)) as made:
        made.kueue.open = False
        made.run(0.3)
        assert not made.job.status
        made.cluster.change(KIND, "digits", lambda one: one["metadata"].update(labels=dict(QUEUE)))
        made.run(LONGEST_FIRST_SECONDS + 2)
        assert len(made.pods) == 2
        assert not [name for name, pod in made.pods.items() if "deletionTimestamp" in pod["metadata"]]
        assert made.job.status["phase"] == "Pending"
        assert not made.cluster.of_kind(kueue.KIND)


def test_a_queued_job_whose_end_is_refused_is_tried_ever_later(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[float] = []
    with World(queued_job(activeDeadlineSeconds=20)) as made:

        async def write_status(*_: Any) -> None:
            await asyncio.sleep(0.01)
            tried.append(made.loop.time())
            raise Stale("a newer version is there")

        made.run(1)
        all_run(made)
        monkeypatch.setattr(made.cluster, "write_status", write_status)
        for _ in range(60):
            made.run(1)
            assert len(tried) < 12, tried
    assert len(tried) > 3
