"""A job whose status is refused as out of date: silent while that is nothing unusual, and then not."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dtjob.controller.cluster import Cluster, JobKey, Stale
from dtjob.controller.reconciler import STALE_BEFORE_SAID, Reconciler
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

KEY: JobKey = ("default", "digits")


class AlwaysNewer:
    """An API server of whose newer version no watch tells."""

    async def write_status(self, job: Manifest, status: dict[str, Any]) -> Manifest:
        raise Stale("the object has been modified")


async def test_a_conflict_that_does_not_pass_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    store: Store = Store()
    store.apply(job_manifest(builders.job(suspend=True)))
    reconciler = Reconciler(cast(Cluster, AlwaysNewer()), store, WorkQueue())
    for _ in range(STALE_BEFORE_SAID):
        assert await reconciler._try(KEY) == "stale"
    assert caplog.text == ""
    assert await reconciler._try(KEY) == "stale"
    assert "default/digits: the object has been modified; looking again in 3.2 s" in caplog.text
