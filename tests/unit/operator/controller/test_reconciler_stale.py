# SPDX-License-Identifier: Apache-2.0
"""A job whose status is refused: as out of date, silent while that is nothing unusual, or as one call too many."""

from typing import Any, cast

import pytest

from dtjob.controller.cluster import Cluster, ClusterError, JobKey, Refused, Stale
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.reconciler import STALE_BEFORE_SAID, Reconciler
from dtjob.controller.store import Store
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

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
