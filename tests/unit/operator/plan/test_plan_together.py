# SPDX-License-Identifier: Apache-2.0
"""Elastic workers of a job in a queue, in a gang, or suspended: each of these goes by what the others do."""

from typing import Any

from dtjob.objects import gangs
from dtjob.objects.manifest import Manifest
from dtjob.objects.placeholder import is_placeholder
from dtjob.plan.actions import Delete
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.plan.elastic import elastic_story
from tests.unit.operator.queued import CLAIM, Story


class Queued(Story):
    """A job of elastic workers in a queue."""

    def __init__(self, count: int = 4, **spec: Any) -> None:
        super().__init__(
            replicaSpecs={"chief": {}, "worker": {"replicas": count}},
            elasticPolicy={"minReplicas": 2, "maxReplicas": 8},
            checkpoint=CLAIM,
            **spec,
        )

    def sets(self) -> dict[str, int]:
        """What the Workload asks for."""
        return {one["name"]: one["count"] for one in self.workload["spec"]["podSets"]}

    @property
    def numbers(self) -> tuple[int, int]:
        """Workers that are there, and placeholders."""
        return sum(one.startswith("worker") for one in self.tasks), len(self.placeholders)


def test_a_group_that_shrank_for_lack_of_room_keeps_its_admission() -> None:
    story = Queued()
    story.settle()
    story.admit(flavours={"cpu": "spot"})
    story.settle()
    story.places(now=NOW, without=("worker-2-0", "worker-3-0"))
    story.settle(at(300))
    story.run(at(301))
    assert (story.numbers, story.stands[0], story.sets()["worker"]) == ((2, 0), "Running", 4)
    assert story.said("Admitted") == ("True", "ByTest")
    story.settle(at(1000))
    places = [one for one in story.pods if is_placeholder(one["metadata"]["name"])]
    assert len(places) == 2
    assert all(one["spec"]["nodeSelector"]["pool"] == "spot" for one in places)
    assert all({"key": "spot", "operator": "Exists"} in one["spec"]["tolerations"] for one in places)
    story.places(now=at(1001))
    story.run(at(1002))
    assert (story.numbers, story.stands[0], story.sets()["worker"]) == ((4, 0), "Running", 4)


def test_a_queue_that_admits_fewer_gets_no_more() -> None:
    story = Queued()
    story.settle()
    story.admit(most=3)
    story.run()
    story.settle(at(5000))
    assert (story.numbers, story.stands[0]) == ((3, 0), "Running")
    workers = story.job.status["workers"]
    assert workers["reason"] == "NoRoom"
    assert "its queue has admitted no more" in workers["message"]


def elastic_runs(**spec: Any) -> elastic_story.Story:
    """A job of four elastic workers that runs."""
    story = elastic_story.Story(**spec)
    story.run()
    return story


def test_a_wait_for_room_ends_with_a_suspension() -> None:
    story = elastic_story.without_room("worker-3-0")
    assert "unschedulableSince" in story.workers
    story.change(suspend=True)
    story.settle(at(10))
    assert "unschedulableSince" not in story.workers
    story.change(suspend=False)
    story.settle(at(1000))
    story.places(now=at(1001), without=("worker-3-1",))
    assert story.workers["unschedulableSince"] == "2026-11-21T10:16:41Z"
    assert story.workers["replicas"] == 4


def test_no_room_is_kept_for_workers_that_a_job_about_to_end_never_makes() -> None:
    story = elastic_story.scaled(6, successPolicy="AllWorkers")
    story.settle(at(10))
    assert len(story.placeholders) == 2
    story.becomes("worker-1-0", builders.ended(0))
    story.settle(at(20))
    assert story.placeholders == []
    assert (story.workers["reason"], story.workers["replicas"]) == ("Finishing", 4)
    story.change(replicas=2)
    story.settle(at(30))
    assert (story.workers["reason"], story.workers["replicas"]) == ("Finishing", 4)


def group_of(story: elastic_story.Story) -> Manifest:
    """The job's PodGroup."""
    return next(one for one in story.children.objects if gangs.is_pod_group(one["kind"]))


def in_gang(provider: str, **spec: Any) -> elastic_story.Story:
    """A job in a gang that runs."""
    return elastic_runs(scheduling={"gang": {"provider": provider, **spec.pop("gang", {})}}, **spec)


def test_a_placeholder_goes_where_its_worker_would_and_is_in_no_gang() -> None:
    story = in_gang("Volcano")
    story.change(replicas=6)
    story.settle(at(10))
    held = [one for one in story.pods if is_placeholder(one["metadata"]["name"])]
    assert [one["spec"]["schedulerName"] for one in held] == ["volcano"] * 2
    assert not any(gangs.VOLCANO_GROUP in one["metadata"].get("annotations", {}) for one in held)


def test_the_gang_of_elastic_workers_asks_for_their_least_whatever_their_number() -> None:
    story = in_gang("Kubernetes")
    first = group_of(story)
    story.change(replicas=2)
    made = story.look(at(10))
    assert not any(isinstance(one, Delete) and gangs.is_pod_group(one.kind) for one in made.actions)
    story.settle(at(11))
    assert (builders.gang_minimum(group_of(story)), group_of(story)["metadata"]["uid"]) == (3, first["metadata"]["uid"])


def test_a_pod_group_of_all_workers_is_repaired_after_a_resize() -> None:
    story = in_gang("Kubernetes", least=None)
    assert builders.gang_minimum(group_of(story)) == 5
    story.change(replicas=6)
    story.settle(at(10))
    story.places(now=at(11))
    story.settle(at(12))
    assert builders.gang_minimum(group_of(story)) == 7
    members = [one for one in story.pods if "schedulingGroup" in one["spec"]]
    assert len(members) == 7


def test_the_time_of_a_resize_counts_as_restarting() -> None:
    story = elastic_runs()
    assert story.job.status["internal"]["goodput"]["doing"] == "starting"
    story.change(replicas=2)
    story.settle(at(100))
    story.run(at(200))
    assert story.job.status["internal"]["goodput"]["doing"] == "restarting"
    story.change(suspend=True, replicas=3)
    story.settle(at(300))
    story.change(suspend=False)
    story.run(at(400))
    assert (story.workers["replicas"], story.job.status["internal"]["goodput"]["doing"]) == (3, "starting")
