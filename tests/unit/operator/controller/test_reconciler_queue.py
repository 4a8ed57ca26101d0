# SPDX-License-Identifier: Apache-2.0
"""The reconciler over a simulated cluster with Kueue: what a queue does not hold up."""

import asyncio
from typing import Any

import pytest

from dtjob.controller.cluster import ClusterError, Stale
from tests.unit.operator.controller.worlds import all_run
from tests.unit.operator.queued import CLAIM, queued_job
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
