# SPDX-License-Identifier: Apache-2.0
"""Elastic: when the number of workers changes, and to what."""

from dataclasses import replace

import pytest

from dtjob.plan.actions import Create
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.plan.elastic.elastic_story import Story, role, scaled, told, without_room

QUOTA = 'pods "digits-worker-2-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3'


def test_an_elastic_job_begins_with_its_number_of_replicas() -> None:
    story = Story()
    story.run()
    assert story.tasks == ["chief-0-0", *(f"worker-{index}-0" for index in range(4))]
    assert story.workers == {
        "desired": 4,
        "replicas": 4,
        "selector": f"training.dtjob.dev/job-uid={builders.JOB_UID},training.dtjob.dev/role=worker",
        "reason": "AsDesired",
    }


def test_a_larger_number_of_workers_applies_when_there_is_room_and_training_goes_on() -> None:
    story = Story()
    story.run()
    before = story.tasks
    story.change(replicas=6)
    story.settle(at(10))
    assert story.placeholders == ["digits-worker-4-placeholder", "digits-worker-5-placeholder"]
    assert (story.tasks, story.job.status["phase"], story.workers["reason"]) == (before, "Running", "NoRoom")
    assert {role(pod) for pod in story.pods if pod["metadata"]["name"] in story.placeholders} == {"placeholder"}
    story.places("worker-4-placeholder", "worker-5-placeholder", now=at(20))
    assert story.placeholders == []
    assert story.tasks == ["chief-0-1", *(f"worker-{index}-1" for index in range(6))]
    assert len(told(story, "Resizing")) == 1


def test_a_group_grows_by_all_workers_with_room_once_every_placeholder_is_decided() -> None:
    story = scaled(7)
    story.settle(at(10))
    story.places("worker-4-placeholder", now=at(20))
    assert len(story.tasks) == 5  # of the two others nobody knows yet
    story.places(now=at(30), without=("worker-5-placeholder", "worker-6-placeholder"))
    assert len(story.tasks) == 6
    story.run(at(40))
    assert (story.workers["desired"], story.workers["replicas"], story.placeholders) == (7, 5, [])
    story.settle(at(629))
    assert story.placeholders == []
    story.settle(at(630))
    assert story.placeholders == ["digits-worker-5-placeholder", "digits-worker-6-placeholder"]


def test_a_new_number_of_workers_applies_at_once_before_the_first_start() -> None:
    story = Story()
    story.settle(NOW)
    story.change(replicas=5)
    story.settle(at(1))
    assert story.tasks == ["chief-0-1", *(f"worker-{index}-1" for index in range(5))]


@pytest.mark.parametrize("ran", [True, False])
def test_no_room_shrinks_the_group_to_what_there_is(ran: bool) -> None:
    story = Story()
    if ran:
        story.run()
        for name in ("worker-1", "worker-3"):  # their nodes are drained, and no other takes them
            story.becomes(f"{name}-0", builders.evicted())
        story.settle(at(50))
        attempts = ("worker-1-1", "worker-3-1")
        story.places(*attempts, now=at(50), without=attempts)
        assert story.job.status["phase"] == "Restarting"
    else:
        story.settle(NOW)
        story.places(now=at(50), without=("worker-1-0", "worker-3-0"))
    assert story.workers["unschedulableSince"] == "2026-11-21T10:00:50Z"
    assert len(story.tasks) == 5
    restarts = story.job.status.get("restarts")
    made = story.look(at(349))
    assert made.look_again_at is not None
    assert made.look_again_at <= at(350)
    assert len(story.tasks) == 5
    story.settle(at(350))
    number = 2 if ran else 1
    assert story.tasks == [f"{name}-{number}" for name in ("chief-0", "worker-0", "worker-1")]
    assert (story.workers["desired"], story.workers["replicas"]) == (4, 2)
    assert story.job.status.get("restarts") == restarts  # not one of them is counted for it
    assert told(story, "Resizing") == [
        "Workers 4 -> 2: there was no room for worker-1, worker-3 within elasticPolicy.scheduleTimeoutSeconds (300)"
    ]
    story.run(at(360))
    assert story.job.status["ready"] == "3/3"


def test_a_group_never_shrinks_below_its_minimum_and_never_without_a_minimum() -> None:
    story = Story()
    story.settle(NOW)
    lonely = tuple(f"worker-{index}-0" for index in range(1, 4))
    story.places(now=NOW, without=lonely)
    story.settle(at(300))
    assert len(story.tasks) == 3
    fixed = Story(least=None)
    fixed.settle(NOW)
    fixed.places(now=NOW, without=lonely)
    fixed.settle(at(3000))
    assert len(fixed.tasks) == 5


def test_a_chief_without_a_node_gets_that_of_a_worker() -> None:
    story = without_room("chief-0-0")
    story.settle(at(300))
    assert story.tasks == ["chief-0-1", "worker-0-1", "worker-1-1", "worker-2-1"]


def test_room_in_time_changes_nothing() -> None:
    story = without_room("worker-3-0")
    story.places(now=at(299))
    assert "unschedulableSince" not in story.workers
    story.settle(at(5000))
    assert len(story.tasks) == 5


@pytest.mark.parametrize(
    "status",
    [
        builders.waiting("ImagePullBackOff"),
        {"phase": "Pending"},
        {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
    ],
    ids=["no image", "nothing said", "scheduling gates"],
)
def test_waits_for_other_reasons_than_room_do_not_shrink_the_group(status: dict[str, object]) -> None:
    story = Story()
    story.settle(NOW)
    story.becomes("worker-3-0", status)
    story.settle(at(5000))
    assert len(story.tasks) == 5
    assert "unschedulableSince" not in story.workers


def test_a_quota_shrinks_a_group_and_a_restarted_operator_goes_on_counting() -> None:
    story = Story()
    story.settle(NOW)
    story.lose("digits-worker-2-0", "digits-worker-3-0")
    story.job = builders.with_status(story.job, {**story.job.status, "allCreated": False})
    waits_since = "2026-11-21T10:00:10Z"
    for seconds, problems in (
        (10, {"Pod/digits-worker-2-0": QUOTA}),
        (20, {}),
        (309, {"Pod/digits-worker-2-0": QUOTA}),
    ):
        story.children = replace(story.children, problems=problems)
        story.write(at(seconds))
        assert story.workers["unschedulableSince"] == waits_since
    story.write(at(310))
    assert story.workers["resizing"]["to"] == 2


def test_a_pod_that_is_refused_for_another_reason_than_a_quota_does_not_wait_for_room() -> None:
    story = Story()
    story.settle(NOW)
    story.lose("digits-worker-2-0")
    story.children = replace(story.children, problems={"Pod/digits-worker-2-0": "a webhook denied the request"})
    story.write(at(10))
    assert "unschedulableSince" not in story.workers


def test_a_shrunken_group_grows_again_when_there_is_room_but_not_too_often() -> None:
    story = Story().shrunk()
    story.settle(at(899))
    assert story.placeholders == []
    made = story.look(at(900))
    assert [one.name for one in made.actions if isinstance(one, Create)] == [
        "digits-worker-2-placeholder",
        "digits-worker-3-placeholder",
    ]
    story.places(now=at(901), without=("worker-2-placeholder", "worker-3-placeholder"))
    story.settle(at(90_000))  # they wait, and training goes on
    assert (len(story.tasks), len(story.placeholders), story.job.status["phase"]) == (3, 2, "Running")
    story.places(now=at(90_001))
    story.run(at(90_010))
    assert (story.workers["replicas"], story.workers["reason"], story.placeholders) == (4, "AsDesired", [])


def test_a_changed_count_is_tried_at_once_whatever_there_was_no_room_for() -> None:
    story = Story().shrunk()
    story.change(replicas=5)
    story.settle(at(400))
    assert story.placeholders == [f"digits-worker-{index}-placeholder" for index in (2, 3, 4)]
    story.change(replicas=2)
    story.settle(at(410))
    assert (story.placeholders, len(story.tasks), story.workers["reason"]) == ([], 3, "AsDesired")


def test_a_placeholder_that_has_to_go_again_is_no_room() -> None:
    story = Story().shrunk()
    story.settle(at(900))
    story.becomes("worker-2-placeholder", builders.rejected())
    story.becomes("worker-3-placeholder", builders.running())
    story.settle(at(910))
    assert (story.placeholders, len(story.tasks)) == ([], 3)
    story.settle(at(1509))
    assert story.placeholders == []
    story.settle(at(1510))
    assert len(story.placeholders) == 2


def test_a_refused_placeholder_blocks_nothing() -> None:
    story = Story().shrunk()
    story.settle(at(900))
    story.lose("digits-worker-3-placeholder")
    story.children = replace(story.children, problems={"Pod/digits-worker-3-placeholder": QUOTA})
    story.look(at(901))
    assert story.stands == ("Running", "AllTasksRunning")
    story.lose("digits-worker-3-placeholder")
    story.becomes("worker-2-placeholder", builders.running())
    story.look(at(902))
    assert story.workers["resizing"]["to"] == 3


def test_a_quota_that_refuses_an_evaluator_is_not_one_of_placeholders() -> None:
    story = Story(evaluator=True).shrunk()
    story.settle(at(900))
    story.lose("digits-evaluator-0-0", "digits-worker-3-placeholder")
    story.children = replace(story.children, problems={"Pod/digits-evaluator-0-1": QUOTA})
    story.becomes("worker-2-placeholder", builders.running())
    story.write(at(901))
    assert "resizing" not in story.workers


def test_parameter_server_trains_on_without_a_worker_that_finds_no_node() -> None:
    story = Story(strategy="ParameterServer")
    story.run()
    story.becomes("worker-3-0", builders.evicted())
    story.settle(at(10))
    story.places("worker-3-1", now=at(10), without=("worker-3-1",))
    story.settle(at(5000))
    assert (len(story.tasks), story.job.status["phase"]) == (7, "Running")
    story.becomes("ps-1-0", builders.evicted())  # with supervisors all wait for all now
    story.settle(at(5010))
    story.places("ps-1-1", now=at(5020), without=("worker-3-1", "ps-1-1"))
    story.settle(at(5320))
    assert [name for name in story.tasks if name.startswith("worker")] == ["worker-0-2", "worker-1-2"]


def test_nothing_changes_while_training_is_about_to_end() -> None:
    story = Story()
    story.run()
    story.becomes("worker-3-0", builders.ended(0))
    story.change(replicas=2)
    story.settle(at(10))
    assert len(story.tasks) == 5
    assert "resizing" not in story.workers


def test_a_clock_that_was_set_back_holds_nothing_up_for_long() -> None:
    story = Story()
    story.settle(at(10_000))
    story.places(now=at(10_000), without=("worker-3-0",))
    story.settle(at(0))
    story.settle(at(300))
    assert len(story.tasks) == 4


def test_a_clock_that_was_set_back_does_not_keep_a_group_small() -> None:
    story = Story().shrunk()  # at 300
    story.settle(at(-10_000))
    assert not story.placeholders
    story.settle(at(-10_000 + 600))
    assert len(story.placeholders) == 2


def test_a_job_that_is_no_longer_elastic_comes_to_its_count() -> None:
    story = Story().shrunk()
    story.change(replicas=4, elastic_policy=None)
    story.settle(at(900))
    assert len(story.placeholders) == 2
    story.places(now=at(901))
    story.run(at(910))
    assert (story.workers["replicas"], story.workers["desired"]) == (4, 4)


def test_a_placeholder_that_is_lost_with_its_node_holds_up_no_other() -> None:
    story = scaled(6)
    story.settle(at(10))
    lost = next(one for one in story.pods if one["metadata"]["name"] == "digits-worker-4-placeholder")
    lost["status"], lost["spec"]["nodeName"] = builders.running(), "node-1"
    lost["metadata"] |= builders.deleting(lost, at(20))["metadata"]
    made = story.look(at(20))
    assert made.look_again_at is not None
    assert made.look_again_at < at(80)
    story.places("worker-5-placeholder", now=at(100))
    assert told(story, "Resizing") == ["Workers 4 -> 5: there is room for 1 more of 6"]
