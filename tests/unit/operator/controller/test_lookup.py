# SPDX-License-Identifier: Apache-2.0
"""Pods that the watch loses sight of, over the simulated cluster: asked for by name, and replaced."""

import asyncio
from collections.abc import Iterator
from typing import cast

import pytest

from dtjob.controller.cluster import Cluster, ClusterError
from dtjob.controller.pace.slots import CALLS_OF_A_JOB, Slots
from dtjob.controller.reconciler import look_up
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import Children, Unread
from tests.unit.operator import builders
from tests.unit.operator.controller.worlds import running
from tests.unit.operator.simulation.operator import World

CHIEF = "digits-chief-0-0"


@pytest.fixture
def made() -> Iterator[World]:
    """A cluster whose job runs, and which has seen no call since."""
    with running() as made:
        made.cluster.calls.clear()
        made.cluster.events.clear()
        yield made


def take_label(made: World, name: str, label: str) -> None:
    """Somebody removes the label."""
    made.cluster.change("Pod", name, lambda one: one["metadata"]["labels"].pop(label))


@pytest.mark.parametrize("heard_by", ["watch", "resync", "new operator"])
def test_a_pod_that_lost_the_label_by_which_it_is_watched_is_replaced_when_it_has_ended(made: World, heard_by: str):
    take_label(made, CHIEF, labels.JOB_NAME)
    if heard_by != "watch":
        (made.resync if heard_by == "resync" else made.restart)()
    made.run(5)
    assert "deletionTimestamp" in made.pods[CHIEF]["metadata"]
    assert "digits-chief-0-1" not in made.pods, "it still saves"
    made.cluster.remove("Pod", CHIEF)
    made.run(60)
    assert sorted(made.pods) == ["digits-chief-0-1", "digits-worker-0-0", "digits-worker-1-0"]
    assert made.cluster.calls.count(f"delete Pod {CHIEF}") == 1
    assert made.job.status["restarts"] == {"total": 1, "causes": {"Deleted": 1}}


@pytest.mark.parametrize("written", [True, False], ids=["the status says that it was made", "no status is written"])
def test_a_pod_that_lost_its_label_before_all_were_there_is_replaced(written: bool):
    """If no status says that it was made, its own create says that it exists already."""
    with World(builders.job()) as made:
        made.cluster.failing["create Pod digits-worker-1-0"] = ClusterError("timeout")
        made.run(1 if written else 0.03)
        take_label(made, CHIEF, labels.JOB_NAME)
        before = made.pods[CHIEF]["metadata"]["uid"]
        if not written:
            made.restart()
        made.run(5)
        made.cluster.failing.clear()
        made.run(60)
        chief = "digits-chief-0-1" if written else CHIEF
        assert sorted(made.pods) == [chief, "digits-worker-0-0", "digits-worker-1-0"]
        assert made.pods[chief]["metadata"]["uid"] != before


def test_nothing_is_replaced_while_the_cluster_does_not_answer(made: World):
    made.cluster.failing[f"get Pod {CHIEF}"] = ClusterError("timeout")
    take_label(made, CHIEF, labels.JOB_NAME)
    made.run(30)
    assert made.cluster.calls == []
    made.cluster.failing.clear()
    made.cluster.remove("Pod", CHIEF)
    made.run(60)
    assert made.cluster.calls[:2] == [f"get Pod {CHIEF}", "write status"]
    assert "digits-chief-0-1" in made.pods


@pytest.mark.parametrize(("name", "next_one"), [("digits-worker-1-0", "digits-worker-1-1"), (CHIEF, None)])
def test_a_pod_whose_owner_is_no_job_is_asked_for_once(made: World, name: str, next_one: str | None):
    """Somebody has edited its owner reference and left the uid in it. A chief's successor waits for its end."""
    made.cluster.rules.tampered.add(made.pods[name]["metadata"]["uid"])
    made.cluster.change("Pod", name, lambda one: one["metadata"]["ownerReferences"][0].update(apiVersion="b/v1"))
    made.run(5)
    assert made.cluster.calls.count(f"get Pod {name}") == 1
    assert {one for one in made.pods if one.endswith("-1")} == ({next_one} if next_one else set())


class Overloaded:
    """An API server that answers each call with an error."""

    def __init__(self) -> None:
        self.calls = 0

    async def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        self.calls += 1
        await asyncio.sleep(0.001)
        raise ClusterError("429: too many requests")


async def test_a_look_that_failed_asks_for_no_more_pods() -> None:
    """The job is tried again in 0.1 s, which would ask for all of them beside those of the first look."""
    cluster, slots = Overloaded(), Slots()
    unread = Unread([("Pod", f"digits-worker-{number}-0") for number in range(1000)])
    with pytest.raises(ClusterError):
        await look_up(cast(Cluster, cluster), slots, builders.job(workers=1000), Children(), unread)
    asked = cluster.calls
    await asyncio.sleep(0.2)
    assert cluster.calls == asked, "calls of which nobody takes the answer"
    assert asked <= 2 * CALLS_OF_A_JOB
