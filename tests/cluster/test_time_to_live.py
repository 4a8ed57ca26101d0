# SPDX-License-Identifier: Apache-2.0
"""When an ended job is deleted on a real API server. No operator runs here: one reconciler looks when the test says so,
and knows of a change when the test tells it."""

from datetime import UTC, datetime, timedelta

import pytest

from dtjob import times
from dtjob.api.job import KIND
from dtjob.controller.cluster import JobKey, Stale
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.reconciler import Reconciler
from dtjob.controller.store import Store
from dtjob.kube.calls.client import connect
from tests.cluster.support.jobs import job
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

HOUR = 3600


async def test_a_time_to_live_that_was_just_raised_is_respected(
    cluster: ControlPlane, api: Api, namespace: str
) -> None:
    key: JobKey = (namespace, "digits")
    store, queue = Store(), WorkQueue[JobKey]()
    now = ended = datetime.now(UTC)
    async with connect(str(cluster.kubeconfig)) as kube:
        reconciler = Reconciler(kube, store, queue, lambda: now)

        async def hear() -> None:
            stored = await kube.get(KIND, *key)
            assert stored is not None, "the job was deleted"
            store.apply(stored)

        created = api.create("dtjobs", namespace, job(strategy="Default", ttlSecondsAfterFinished=HOUR))
        status = {"phase": "Succeeded", "completionTime": times.rfc3339(ended)}
        await kube.write_status({**created, "kind": KIND}, status)
        for _ in range(2):  # it says all that there is to say of a job that has ended
            await hear()
            await reconciler.reconcile(key)
        now = ended + timedelta(seconds=2 * HOUR)
        api.patch("dtjobs", namespace, "digits", {"spec": {"ttlSecondsAfterFinished": 24 * HOUR}})
        with pytest.raises(Stale):
            await reconciler.reconcile(key)
        await hear()
        await reconciler.reconcile(key)
        await hear()
        now = ended + timedelta(seconds=25 * HOUR)
        await reconciler.reconcile(key)
        assert await kube.get(KIND, *key) is None
