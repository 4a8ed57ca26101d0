"""Whose turn it is to be asked for its ConfigMap, and what the answers do."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, cast

import pytest

from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.kube.api_error import ApiError
from dtjob.kube.client import Kube
from dtjob.kube.config_maps import (
    IF_BUSY,
    MOST_A_ROUND,
    MOST_OTHERS,
    TURN_SECONDS,
    ConfigMaps,
    due,
    known,
)
from dtjob.objects import labels, shared
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

RUNNING: dict[str, Any] = {"phase": "Running", "replicaStatuses": {"worker": {"replicas": 2, "active": 2}}}
STARTING: dict[str, Any] = {"phase": "Pending", "replicaStatuses": {"worker": {"replicas": 2, "pending": 1}}}
ENDED: dict[str, Any] = {"phase": "Succeeded", "replicaStatuses": {"worker": {"replicas": 2, "pending": 1}}}
KEY: JobKey = ("default", "digits")


def put(
    store: Store, name: str = "digits", status: dict[str, Any] = STARTING, config_map: bool = True, bound: bool = True
) -> None:
    """A job; where a task of it is pending, with a pod that waits on its node, or for one."""
    job = builders.job(name=name, uid=f"uid-{name}")
    if status is not RUNNING:
        store.apply(builders.pod(job, "worker-0", builders.waiting("ContainerCreating") if bound else None))
    manifest = job_manifest(job)
    store.apply({**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7"}, "status": status})
    if config_map:
        store.apply(builders.stored(shared.config_map(job)))


class Cluster:
    """Answers each call with the next of `answers`."""

    def __init__(self, *answers: Manifest | ApiError | None) -> None:
        self.answers, self.asked = list(answers), list[str]()

    async def get_metadata(self, kind: str, namespace: str, name: str) -> Manifest | None:
        self.asked.append(f"{namespace}/{name}")
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


def made(store: Store, cluster: Cluster) -> tuple[ConfigMaps, WorkQueue[JobKey]]:
    """So much time passes between two looks that who starts pods is asked at the second one and at each after that."""
    queue: WorkQueue[JobKey] = WorkQueue()
    clock = itertools.count(0.0, TURN_SECONDS)
    return ConfigMaps(cast(Kube, cluster), store, queue, lambda: next(clock)), queue


async def test_whose_config_map_was_made_just_now_is_not_asked() -> None:
    store = Store()
    put(store)
    cluster = Cluster(known(store, KEY))
    config_maps, _ = made(store, cluster)
    await config_maps.look()
    assert cluster.asked == []
    await config_maps.look()
    assert len(cluster.asked) == 1


def test_all_have_their_turn_and_who_starts_pods_comes_first() -> None:
    store = Store()
    for name, status in (("runs", RUNNING), ("starts", STARTING), ("ended", ENDED)):
        put(store, name, status)
    asked: dict[JobKey, float] = {("default", "runs"): 0, ("default", "starts"): 5, ("default", "ended"): 0}
    assert due(store, asked, TURN_SECONDS - 1) == []
    assert due(store, asked, TURN_SECONDS) == [("default", "runs")]
    assert due(store, asked, TURN_SECONDS + 5) == [("default", "starts"), ("default", "runs")]


def test_while_there_is_much_to_do_all_wait_longer() -> None:
    store = Store()
    for name, status in (("runs", RUNNING), ("starts", STARTING)):
        put(store, name, status)
    asked: dict[JobKey, float] = {("default", name): 0 for name in ("runs", "starts")}
    assert due(store, asked, IF_BUSY * TURN_SECONDS - 1, busy=True) == []
    assert due(store, asked, IF_BUSY * TURN_SECONDS, busy=True) == [("default", "starts"), ("default", "runs")]


def test_who_waits_for_a_node_needs_no_config_map_yet() -> None:
    store = Store()
    put(store, bound=False)
    asked: dict[JobKey, float] = {KEY: 1000}
    assert due(store, asked, 1000 + TURN_SECONDS - 1) == []
    assert due(store, asked, 1000 + TURN_SECONDS) == [KEY]


def test_jobs_that_run_have_a_small_share_of_the_calls() -> None:
    store, asked = Store(), dict[JobKey, float]()
    for number in range(MOST_A_ROUND):
        put(store, f"job-{number}", RUNNING)
        asked["default", f"job-{number}"] = float(number)
    assert due(store, asked, 1000) == [("default", f"job-{number}") for number in range(MOST_OTHERS)]


def test_however_many_there_are_a_round_is_bounded_and_all_have_their_turn() -> None:
    store, asked, seen = Store(), dict[JobKey, float](), set[JobKey]()
    for number in range(3 * MOST_A_ROUND):
        put(store, f"job-{number}", config_map=False)
        asked["default", f"job-{number}"] = 0
    for now in (TURN_SECONDS, TURN_SECONDS + 3, TURN_SECONDS + 6):
        keys = due(store, asked, now)
        assert len(keys) == MOST_A_ROUND
        asked |= dict.fromkeys(keys, float(now))
        seen |= set(keys)
    assert len(seen) == 3 * MOST_A_ROUND


async def test_one_that_is_gone_makes_its_job_due() -> None:
    store = Store()
    put(store)
    there = known(store, KEY)
    assert there is not None
    config_maps, queue = made(store, Cluster(None))
    await config_maps.look()
    await config_maps.look()
    assert known(store, KEY) is None
    assert await queue.get() == KEY


async def test_one_that_lost_its_labels_is_still_there() -> None:
    store = Store()
    put(store)
    there = known(store, KEY)
    assert there is not None
    bare = {**there, "metadata": {**there["metadata"], "labels": {}, "resourceVersion": "9999999"}}
    config_maps, _ = made(store, Cluster(bare))
    await config_maps.look()
    await config_maps.look()
    found = known(store, KEY)
    assert found is not None
    assert (found["metadata"]["resourceVersion"], labels.of(found)[labels.JOB_NAME]) == ("9999999", "digits")


async def test_after_a_start_only_what_is_unknown_is_asked_for() -> None:
    store = Store()
    put(store, "known")
    put(store, "ended", ENDED, config_map=False)
    put(store, config_map=False)
    new = job_manifest(builders.job(name="new", uid="uid-new"))
    store.apply({**new, "metadata": {**new["metadata"], "resourceVersion": "7"}})
    wanted = builders.stored(shared.config_map(builders.job(uid="uid-digits")))
    cluster = Cluster(wanted)
    config_maps, _ = made(store, cluster)
    await config_maps.look_for_unknown()
    assert cluster.asked == [f"default/{wanted['metadata']['name']}"]
    assert known(store, KEY) is not None


async def test_no_error_ends_the_looking(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    put(store)
    cluster = Cluster(ApiError(500, "", "no"), None)
    config_maps, queue = made(store, cluster)
    cluster.answers.insert(0, {"no": "metadata"})
    polling = asyncio.create_task(config_maps.poll_forever(0.001))
    assert await queue.get() == KEY  # the third answer says that it is gone
    polling.cancel()
    assert "a bug in dtjob" in caplog.text


@pytest.mark.parametrize("code", [403, 500])
async def test_no_answer_says_nothing_about_what_is_there(code: int) -> None:
    store = Store()
    put(store)
    config_maps, queue = made(store, Cluster(ApiError(code, "", "no")))
    await config_maps.look()
    if code == 403:
        await config_maps.look()
    else:
        with pytest.raises(ClusterError):
            await config_maps.look()
    assert known(store, KEY) is not None
    assert len(queue) == 0


def test_of_an_elastic_job_the_config_map_of_the_group_that_is_there_is_asked_for() -> None:
    job, small = builders.job(workers=4, elasticPolicy={"minReplicas": 1}), builders.job(workers=2)
    manifest = job_manifest(job)
    status = {**STARTING, "workers": {"desired": 4, "replicas": 2}}

    def put_job(store: Store) -> None:
        store.apply({**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7"}, "status": status})

    wanted = shared.config_map_name(small)
    store, cluster = Store(), Cluster(builders.stored(shared.config_map(small)))
    put_job(store)
    asyncio.run(made(store, cluster)[0].look_for_unknown())
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

    async def get_metadata(self, kind: str, namespace: str, name: str) -> Manifest | None:
        if name == self.broken:
            raise ApiError(500, "InternalError", "unable to transform key: no matching key was found")
        return self.found.get(name)


async def test_one_config_map_that_cannot_be_read_is_no_reason_to_begin_with_no_job() -> None:
    store, found = Store(), {}
    for name in ("first", "second", "third"):
        put(store, name, config_map=False)
        made = builders.stored(shared.config_map(builders.job(name=name, uid=f"uid-{name}")))
        found[made["metadata"]["name"]] = made
    broken = shared.config_map_name(builders.job(name="second", uid="uid-second"))
    config_maps = ConfigMaps(cast(Kube, OneIsBroken(found, broken)), store, WorkQueue())
    await config_maps.look_for_unknown()
    assert known(store, ("default", "first")) is not None
    assert known(store, ("default", "third")) is not None
    assert known(store, ("default", "second")) is None
