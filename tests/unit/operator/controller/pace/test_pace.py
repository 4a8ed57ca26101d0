# SPDX-License-Identifier: Apache-2.0
"""How often: less for what is big and many."""

from datetime import timedelta
from typing import Any

import pytest

from dtjob.controller.pace.pace import LONGEST_GATHER_SECONDS, gather_seconds, progress_every
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World, job_manifest


@pytest.mark.parametrize(("children", "seconds"), [(0, 0.1), (3, 0.1), (100, 0.1), (300, 0.3), (500, 0.5), (4000, 0.5)])
def test_events_of_big_jobs_are_gathered_longer(children: int, seconds: float) -> None:
    assert gather_seconds(children) == pytest.approx(seconds)
    assert gather_seconds(children) <= LONGEST_GATHER_SECONDS


@pytest.mark.parametrize(("jobs", "seconds"), [(0, 10), (1, 10), (200, 10), (1000, 50), (5000, 250)])
def test_progress_writes_of_all_jobs_together_have_a_limit(jobs: int, seconds: float) -> None:
    assert progress_every(jobs) == timedelta(seconds=seconds)


def run(made: World, name: str, **status: Any) -> None:
    made.cluster.change("Pod", name, lambda one: one.update(status={**builders.running(), **status}))


def test_progress_of_many_jobs_is_written_less_often() -> None:
    with World(builders.job(workers=2)) as made:
        made.run(2)
        for name in made.pods:
            run(made, name)
        for number in range(1000):
            other = job_manifest(builders.job(name=f"other-{number}", uid=f"other-{number}"))
            other["metadata"]["resourceVersion"] = "1"
            made.store.apply(other)
        made.run(2)
        before = made.cluster.calls.count("write status")
        for step in range(100):
            report: Manifest = {"jobUid": made.job.metadata.uid, "step": step, "state": "training"}
            made.store.set_report(made.key, "chief-0", report)
            made.queue.add(made.key)
            made.run(2)
        assert made.cluster.calls.count("write status") - before <= 200 / 50 + 1
        assert made.job.status["progress"]["step"] >= 74
