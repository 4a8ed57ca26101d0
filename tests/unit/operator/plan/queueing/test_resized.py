# SPDX-License-Identifier: Apache-2.0
"""Another number of elastic workers in a queue: what is asked for, and what the group does meanwhile."""

from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Delete
from tests.unit.operator import builders, queued
from tests.unit.operator.builders import at
from tests.unit.operator.queued import CLAIM, QUEUE, Story, condition

ELASTIC: Manifest = {"replicaSpecs": {"chief": {}, "worker": {"replicas": 2}}, "elasticPolicy": {"minReplicas": 1}}
REPLACED = condition("Finished", True, "WorkloadSliceReplaced", "Replaced to accommodate a workload")


def running(workers: int = 2) -> Story:
    """A job of elastic workers that was admitted and runs."""
    specs = {"chief": {}, "worker": {"replicas": workers}}
    return queued.running(replicaSpecs=specs, elasticPolicy={"minReplicas": 1})


def asking(workers: int = 4) -> Story:
    """One that asks for more."""
    story = running()
    story.scale(workers)
    story.settle(at(10))
    return story


def uid(one: Manifest) -> str:
    return str(one["metadata"]["uid"])


def admit(story: Story) -> None:
    """Kueue admits the one that asks for four, and in the same step finishes the other."""
    asks, had = story.workloads[4], story.workloads[2]
    story.admit(at(20), {"cpu": "spot"}, of=asks)
    story.say(REPLACED, of=had)


def test_a_growing_group_trains_on_and_its_new_workload_asks_for_all_workers() -> None:
    story = asking()
    assert (story.stands, len(story.pods)) == (("Running", "AllTasksRunning"), 3)
    asks, had = story.workloads[4], story.workloads[2]
    annotations = asks["metadata"]["annotations"]
    assert annotations[kueue.REPLACES] == f"default/{had['metadata']['name']}"
    assert asks["metadata"]["name"] != had["metadata"]["name"]
    assert not [one for one in asks["spec"]["podSets"] if "minCount" in one]
    assert "4 workers are asked for in queue team-a" in story.job.status["workers"]["message"]
    story.say(condition("QuotaReserved", False, "Pending", "insufficient quota"), of=asks)
    story.settle(at(11))
    assert story.job.status["workers"]["message"].endswith("Kueue says: insufficient quota")


def test_the_group_grows_after_the_admission_and_the_first_workload_is_deleted() -> None:
    story = asking()
    admit(story)
    story.settle(at(21))
    assert list(story.workloads) == [4]
    assert story.job.status["queue"]["uid"] == uid(story.workloads[4])
    assert story.job.status["queue"]["podSets"]["worker"]["count"] == 4
    assert story.job.status["queue"]["podSets"]["worker"]["nodeSelector"] == {"pool": "spot"}
    assert story.stands[0] == "Running"
    assert len(story.placeholders) == 2
    assert not [one for one in story.events if one.reason == "Evicted"]


def test_an_unobserved_admission_is_taken_over_though_the_first_workload_is_gone() -> None:
    story = asking()
    admit(story)
    story.lose(uid(story.workloads[2]))
    story.settle(at(21))
    assert story.stands[0] == "Running"
    assert story.job.status["queue"]["uid"] == uid(story.workloads[4])


def test_a_flavour_that_is_gone_leaves_the_pods_where_they_go() -> None:
    story = asking()
    del story.there["ResourceFlavor", "spot"]
    admit(story)
    story.settle(at(21))
    workers = story.job.status["queue"]["podSets"]["worker"]
    assert (workers["count"], workers["nodeSelector"]) == (4, {"pool": "spot"})
    assert story.stands[0] == "Running"


def test_a_new_number_of_workers_is_written_into_the_waiting_workload() -> None:
    story = asking()
    before = uid(story.workloads[4])
    story.scale(5)
    story.settle(at(20))
    assert sorted(story.workloads) == [2, 5]
    assert uid(story.workloads[5]) == before
    story.scale(2)
    story.settle(at(30))
    assert (list(story.workloads), story.stands[0]) == ([2], "Running")


def test_a_workload_is_deleted_only_at_the_version_that_was_not_admitted() -> None:
    story = asking()
    asks = story.workloads[4]
    story.scale(2)
    deleted = [one for one in story.look(at(20)).actions if isinstance(one, Delete)]
    assert [(one.uid, one.version) for one in deleted] == [(uid(asks), asks["metadata"]["resourceVersion"])]


def test_a_job_whose_replacing_workload_was_deleted_queues_again() -> None:
    story = asking()
    had = story.workloads[2]
    story.lose(uid(story.workloads[4]))
    story.say(REPLACED, of=had)
    story.settle(at(20))
    assert (story.stands, story.pods) == (("Suspended", "Queued"), [])
    assert uid(story.workloads[4]) != uid(had)
    assert story.said("Finished") is None


def test_removed_workers_give_their_quota_back_when_they_have_ended() -> None:
    story = running(workers=3)
    story.scale(1)
    story.look(at(10))
    assert list(story.workloads) == [3]  # they still save
    story.run(at(20))
    assert (list(story.workloads), story.stands) == ([1], ("Running", "AllTasksRunning"))
    assert len(story.pods) == 2
    assert not [one for one in story.events if one.reason == "Evicted"]


def test_a_job_admitted_with_fewer_workers_keeps_its_workload_when_scaled_down() -> None:
    story = Story(
        checkpoint=CLAIM, replicaSpecs={"chief": {}, "worker": {"replicas": 4}}, elasticPolicy={"minReplicas": 1}
    )
    story.settle()
    story.admit(most=2)
    story.run()
    assert len(story.pods) == 3
    story.scale(3)
    story.settle(at(10))
    assert (list(story.workloads), len(story.pods), story.stands[0]) == ([4], 3, "Running")


def test_a_minimum_above_the_number_of_workers_queues_the_job_again() -> None:
    story = running()
    story.scale(4, least=3)
    story.settle(at(10))
    assert (story.stands, story.pods) == (("Suspended", "Queued"), [])
    assert list(story.workloads) == [4]


def test_a_scaled_job_with_a_topology_queues_again() -> None:
    story = Story(checkpoint=CLAIM, **ELASTIC)
    story.settle()
    story.admit(topologyAssignment={"levels": ["rack"]})
    story.run()
    story.scale(3)
    story.settle(at(10))
    assert (story.stands, list(story.workloads)) == (("Suspended", "Queued"), [3])


def test_a_group_that_gave_quota_back_asks_again_before_it_grows() -> None:
    story = running(workers=3)
    story.scale(1)
    story.look(at(10))
    story.run(at(20))
    assert story.job.status["queue"]["podSets"]["worker"]["count"] == 1
    story.scale(3)
    story.settle(at(400))
    assert sorted(story.workloads) == [1, 3]
    assert len(story.pods) == 2  # no placeholder uses what others may have by now
    assert "3 workers are asked for in queue team-a" in story.job.status["workers"]["message"]


def test_the_first_workload_may_be_deleted_while_checks_of_the_second_are_open() -> None:
    story = asking()
    had = story.workloads[2]
    story.reserve(of=story.workloads[4])
    story.say(REPLACED, of=had)
    story.settle(at(21))
    story.lose(uid(story.workloads[2]))
    story.settle(at(22))
    assert (story.stands[0], len(story.pods), list(story.workloads)) == ("Running", 3, [4])
    story.admit(at(30), {"cpu": "spot"}, of=story.workloads[4])
    story.settle(at(31))
    assert story.job.status["queue"]["podSets"]["worker"]["count"] == 4


def test_a_workload_that_has_quota_again_is_not_written() -> None:
    story = asking()
    admit(story)
    story.settle(at(21))
    story.evict()
    while story.said("QuotaReserved") != ("False", "Pending"):
        story.look(at(30))
    story.reserve()
    assert story.look(at(31)).actions == ()  # an API server refuses it
    story.admit(at(32), {"cpu": "spot"})
    story.run(at(33))
    assert (story.stands[0], len(story.pods)) == ("Running", 5)


def test_a_job_that_lost_its_queue_label_asks_for_no_more_and_trains_on() -> None:
    story = running()
    story.label()
    story.scale(4)
    story.settle(at(10))
    assert (story.stands[0], len(story.pods), list(story.workloads)) == ("Running", 3, [2])
    label_is_gone = "the group has 2 of 4 workers; label kueue.x-k8s.io/queue-name is gone, so no more are asked for"
    assert story.job.status["workers"]["message"] == label_is_gone
    story.label(**QUEUE)
    story.settle(at(20))
    assert sorted(story.workloads) == [2, 4]


def test_quota_is_given_back_beside_a_placeholder_that_is_still_wanted() -> None:
    story = running(6)
    shrunk = {"desired": 6, "replicas": 3, "reason": "NoRoom", "adjustedAt": "2026-11-21T10:00:00Z"}
    story.job = builders.with_status(
        story.job, {**story.job.status, "workers": {**story.job.status["workers"], **shrunk}}
    )
    story.settle(at(1000))
    assert len(story.placeholders) == 3
    story.scale(4)
    story.settle(at(1010))
    assert story.placeholders == ["digits-worker-3-placeholder"]
    assert list(story.workloads) == [4]
