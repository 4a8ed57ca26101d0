# SPDX-License-Identifier: Apache-2.0
"""A job whose status or Workload is refused: as out of date, silent while that is nothing unusual, or as one call too
many."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from dtjob.api.job import KIND
from dtjob.controller.cluster import Cluster, ClusterError, JobKey, Refused, Stale
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.reconciler import STALE_BEFORE_SAID, Reconciler
from dtjob.controller.store import Store
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.controller.worlds import all_run
from tests.unit.operator.queued import CLAIM, queued_job
from tests.unit.operator.simulation.api import copied
from tests.unit.operator.simulation.life.stage import elastic
from tests.unit.operator.simulation.operator import World, job_manifest

KEY: JobKey = ("default", "digits")


class Refusing:
    """An API server that takes no status, and of whose newer version no watch tells."""

    def __init__(self, error: ClusterError) -> None:
        self.error = error

    async def write_status(self, job: Manifest, status: dict[str, Any]) -> Manifest:
        raise self.error


def reconciler(error: ClusterError) -> Reconciler:
    store, manifest = Store(), job_manifest(builders.job(suspend=True))
    manifest["metadata"]["resourceVersion"] = "7"
    store.apply(manifest)
    return Reconciler(cast(Cluster, Refusing(error)), store, WorkQueue())


async def test_a_conflict_that_does_not_pass_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    made = reconciler(Stale("the object has been modified"))
    for _ in range(STALE_BEFORE_SAID):
        assert await made._try(KEY) == "stale"
    assert caplog.text == ""
    assert await made._try(KEY) == "stale"
    assert "default/digits: the object has been modified; looking again in 3.2 s" in caplog.text


async def test_a_throttled_call_is_repeated_only_after_the_time_in_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    error = ClusterError("too many requests")
    error.retry_after = 7.0
    assert await reconciler(error)._try(KEY) == "failed_call"
    assert "too many requests; trying again in 7.0 s" in caplog.text


async def test_a_refused_status_is_a_call_that_failed_and_is_not_waited_for() -> None:
    made = reconciler(Refused("progress.step: must be of type integer"))
    assert await made._try(KEY) == "failed_call"
    assert made._store.memory(KEY).unanswered == []


@pytest.mark.parametrize("role", ["worker", "data"])
def test_an_operator_that_begins_with_an_older_job_deletes_no_pod_that_is_newer(role: str) -> None:
    """The job got more workers or data workers meanwhile. The list of jobs is older than that, the list of pods is
    not."""
    roles = {"chief": {}, role: {"replicas": 1}}
    with World(
        elastic(builders.job("MultiWorkerMirrored" if role == "worker" else "Mirrored", replicaSpecs=roles))
    ) as made:
        made.run(1)
        all_run(made)
        older = copied(made.cluster.objects[KIND, "digits"])
        made.cluster.change(KIND, "digits", lambda one: one["spec"]["replicaSpecs"][role].update(replicas=2))
        made.run(1)
        pods = {name: one["metadata"]["uid"] for name, one in made.pods.items()}
        assert len(pods) == 3
        pages = made.cluster.pages

        async def stale(kind: str, *arguments: Any) -> AsyncIterator[tuple[list[Manifest], int]]:
            async for found, version in pages(kind, *arguments):
                yield ([older], 0) if kind == KIND else (found, version)

        made.cluster.pages = stale  # type: ignore[method-assign]
        made.restart()
        made.run(1)
        made.lose_watch()
        made.watch_again()
        made.run(10)
        assert {name: one["metadata"]["uid"] for name, one in made.pods.items()} == pods
        assert not [one for one in made.cluster.calls if one.startswith("delete")]


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
