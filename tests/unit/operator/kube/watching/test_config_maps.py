# SPDX-License-Identifier: Apache-2.0
"""Which ConfigMaps an operator asks for when it starts, and what the answers do."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from dtjob.controller.cluster import JobKey
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.api_error import ApiError
from dtjob.kube.calls.client import Kube
from dtjob.kube.watching.config_maps import known, look_for_unknown
from dtjob.objects import labels, shared
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

RUNNING: dict[str, Any] = {"phase": "Running", "replicaStatuses": {"worker": {"replicas": 2, "active": 2}}}
STARTING: dict[str, Any] = {"phase": "Pending", "replicaStatuses": {"worker": {"replicas": 2, "pending": 1}}}
ENDED: dict[str, Any] = {"phase": "Succeeded", "replicaStatuses": {"worker": {"replicas": 2, "pending": 1}}}
KEY: JobKey = ("default", "digits")


def put(store: Store, name: str = "digits", status: dict[str, Any] = STARTING, config_map: bool = True) -> None:
    """A job. If a task of it is pending, it has a pod that waits on its node."""
    job = builders.job(name=name, uid=f"uid-{name}")
    if status is not RUNNING:
        store.apply(builders.pod(job, "worker-0", builders.waiting("ContainerCreating")))
    manifest = job_manifest(job)
    store.apply({**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7"}, "status": status})
    if config_map:
        store.apply(builders.stored(shared.config_map(job)))


class Cluster:
    """Answers each call with the next of `answers`."""

    def __init__(self, *answers: Manifest | ApiError | None) -> None:
        self.answers, self.asked = list(answers), list[str]()

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        self.asked.append(f"{namespace}/{name}")
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


async def look(store: Store, cluster: Any) -> WorkQueue[JobKey]:
    """Take in what is unknown; what became due."""
    queue: WorkQueue[JobKey] = WorkQueue()
    await look_for_unknown(cast(Kube, cluster), store, queue)
    return queue


async def test_only_unknown_config_maps_of_running_jobs_are_looked_up_at_the_start() -> None:
    store = Store()
    put(store, "known")
    put(store, "ended", ENDED, config_map=False)
    put(store, config_map=False)
    new = job_manifest(builders.job(name="new", uid="uid-new"))
    store.apply({**new, "metadata": {**new["metadata"], "resourceVersion": "7"}})
    wanted = builders.stored(shared.config_map(builders.job(uid="uid-digits")))
    cluster = Cluster(wanted)
    await look(store, cluster)
    assert cluster.asked == [f"default/{wanted['metadata']['name']}"]
    assert known(store, KEY) is not None


@pytest.mark.parametrize("code", [403, 500])
async def test_a_config_map_that_cannot_be_read_is_left_unknown(code: int) -> None:
    store = Store()
    put(store, config_map=False)
    queue = await look(store, Cluster(ApiError(code, "", "no")))
    assert known(store, KEY) is None
    assert len(queue) == 0


async def test_a_config_map_that_lost_its_labels_is_still_found() -> None:
    store = Store()
    put(store, config_map=False)
    there = builders.stored(shared.config_map(builders.job(uid="uid-digits")))
    queue = await look(store, Cluster({**there, "metadata": {**there["metadata"], "labels": {}}}))
    found = known(store, KEY)
    assert found is not None
    assert labels.of(found)[labels.JOB_NAME] == "digits"
    assert await queue.get() == KEY


def test_the_config_map_of_an_elastic_jobs_present_group_is_looked_up() -> None:
    job, small = builders.job(workers=4, elasticPolicy={"minReplicas": 1}), builders.job(workers=2)
    manifest = job_manifest(job)
    status = {**STARTING, "workers": {"desired": 4, "replicas": 2}}

    def put_job(store: Store) -> None:
        store.apply({**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7"}, "status": status})

    wanted = shared.config_map_name(small)
    store, cluster = Store(), Cluster(builders.stored(shared.config_map(small)))
    put_job(store)
    asyncio.run(look(store, cluster))
    assert cluster.asked == [f"default/{wanted}"]
    for number, group in enumerate((job, small)):  # that of the earlier group is still there, and says nothing
        store = Store()
        put_job(store)
        store.apply(builders.stored(shared.config_map(job)))
        if number:
            store.apply(builders.stored(shared.config_map(group)))
        found = known(store, KEY)
        assert (found["metadata"]["name"] if found else None) == (wanted if number else None)


class OneIsBroken:
    """Has each job's ConfigMap; one of them cannot be read, now or ever (etcd has it under a lost key, say)."""

    def __init__(self, found: dict[str, Manifest], broken: str) -> None:
        self.found, self.broken = found, broken

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        if name == self.broken:
            raise ApiError(500, "InternalError", "unable to transform key: no matching key was found")
        return self.found.get(name)


async def test_a_config_map_that_cannot_be_read_does_not_hide_those_of_other_jobs() -> None:
    store, found = Store(), {}
    for name in ("first", "second", "third"):
        put(store, name, config_map=False)
        made = builders.stored(shared.config_map(builders.job(name=name, uid=f"uid-{name}")))
        found[made["metadata"]["name"]] = made
    broken = shared.config_map_name(builders.job(name="second", uid="uid-second"))
    await look(store, OneIsBroken(found, broken))
    assert known(store, ("default", "first")) is not None
    assert known(store, ("default", "third")) is not None
    assert known(store, ("default", "second")) is None
