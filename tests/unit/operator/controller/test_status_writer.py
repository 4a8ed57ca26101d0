# SPDX-License-Identifier: Apache-2.0
"""A status is written once, and its Events are told once the status is there."""

from typing import Any

import pytest

from dtjob.controller.cluster import ClusterError, Stale
from dtjob.controller.observer import Observer
from dtjob.controller.status_writer import StatusWriter
from dtjob.controller.store import MOST_UNANSWERED, Memory
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event


class Unanswering:
    """Takes a status, and its answer is lost; the version is another one then."""

    def __init__(self) -> None:
        self.job = manifest_of(7, {"phase": "Pending"})
        self.answers, self.hangs = False, False
        self.events: list[Event] = []

    async def write_status(self, job: Manifest, status: dict[str, Any]) -> Manifest:
        if self.hangs:
            raise ClusterError("the API server did not answer")
        if job["metadata"]["resourceVersion"] != self.job["metadata"]["resourceVersion"]:
            raise Stale("it changed")
        self.job = manifest_of(int(job["metadata"]["resourceVersion"]) + 1, status)
        if not self.answers:
            raise ClusterError("the API server did not answer")
        return self.job

    async def emit(self, job: Manifest, event: Event) -> None:
        self.events.append(event)


class Noting(Observer):
    """Notes which phases were written after which."""

    def __init__(self) -> None:
        self.written: list[tuple[Any, Any]] = []

    def status_written(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        self.written.append((old["phase"], new["phase"]))


def manifest_of(version: int, status: dict[str, Any]) -> Manifest:
    return {"metadata": {"name": "digits", "resourceVersion": str(version)}, "status": status}


EVENT = Event("Normal", "Succeeded", "well")


async def unanswered(noting: Noting) -> tuple[Unanswering, StatusWriter, Memory]:
    """A cluster and its writer, one of whose writes was not answered."""
    cluster, memory = Unanswering(), Memory()
    writer = StatusWriter(cluster, noting)  # type: ignore[arg-type]
    with pytest.raises(ClusterError):
        await writer.write(memory, cluster.job, {"phase": "Succeeded"}, [EVENT])
    return cluster, writer, memory


async def test_events_of_a_status_without_an_answer_are_recorded_once_the_status_is_seen() -> None:
    noting, before = Noting(), manifest_of(7, {"phase": "Pending"})
    cluster, writer, memory = await unanswered(noting)
    await writer.catch_up(memory, before)  # the watch has not told yet
    with pytest.raises(Stale):
        await writer.write(memory, before, {"phase": "Succeeded"}, [EVENT])
    assert not cluster.events
    for _ in range(2):
        await writer.catch_up(memory, cluster.job)
        assert cluster.events == [EVENT]
        assert noting.written == [("Pending", "Succeeded")]


@pytest.mark.parametrize("heard", [True, False], ids=["once that is heard", "before that is heard"])
async def test_events_of_a_status_that_was_not_written_are_recorded_with_the_next_one(heard: bool) -> None:
    cluster, writer, memory = await unanswered(Noting())
    cluster.job, cluster.answers = manifest_of(9, {"phase": "Pending"}), True
    if heard:
        await writer.catch_up(memory, cluster.job)
        assert not cluster.events
    assert await writer.write(memory, cluster.job, {"phase": "Succeeded"}, [EVENT]) == cluster.job
    await writer.catch_up(memory, cluster.job)
    assert cluster.events == [EVENT]


@pytest.mark.parametrize("tries", [1, 20])
async def test_events_are_recorded_though_later_tries_were_not_answered_either(tries: int) -> None:
    """Each try has a time of its own in its status. The first one was applied, and the watch is late."""
    cluster, writer, memory = await unanswered(noting := Noting())
    before = manifest_of(7, {"phase": "Pending"})
    cluster.hangs = True
    for later in range(tries):
        with pytest.raises(ClusterError):
            await writer.write(memory, before, {"phase": "Succeeded", "message": f"{later} seconds later"}, [EVENT])
    assert len(memory.unanswered) <= MOST_UNANSWERED
    await writer.catch_up(memory, cluster.job)
    assert cluster.events == [EVENT]
    assert noting.written == [("Pending", "Succeeded")]


@pytest.mark.parametrize("sent_twice", [True, False], ids=["it was sent twice", "another change came before"])
async def test_events_of_a_stale_status_are_recorded_only_if_it_was_written_all_the_same(sent_twice: bool) -> None:
    """Where a connection breaks, aiohttp sends a PUT again by itself. The first was applied, so the second is stale."""
    cluster, memory = Unanswering(), Memory()
    writer, before = StatusWriter(cluster), cluster.job  # type: ignore[arg-type]
    cluster.job = manifest_of(8, {"phase": "Succeeded" if sent_twice else "Pending"})
    with pytest.raises(Stale):
        await writer.write(memory, before, {"phase": "Succeeded"}, [EVENT])
    await writer.catch_up(memory, cluster.job)
    await writer.catch_up(memory, manifest_of(9, {"phase": "Succeeded"}))
    assert cluster.events == ([EVENT] if sent_twice else [])
