# SPDX-License-Identifier: Apache-2.0
"""Resize: the group saves and ends, and one of another number goes on; an operator may be killed at any line."""

from dataclasses import replace
from typing import Any

import pytest

from dtjob.objects import labels
from dtjob.plan.actions import Create, Delete
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at, plan_answered
from tests.unit.operator.plan.elastic.elastic_story import CLAIM, Story, config_map, scaled, without_room


@pytest.mark.parametrize("strategy", ["MultiWorkerMirrored", "ParameterServer"])
@pytest.mark.parametrize("program", [True, False])
def test_all_training_tasks_save_together_before_new_pods_are_created(strategy: str, program: bool) -> None:
    story = scaled(2, strategy=strategy, program=program)
    made = story.write(at(10))
    assert all(isinstance(one, Delete) for one in made.actions)  # none loses its Service, as they save together
    assert sorted(one.name for one in made.actions if isinstance(one, Delete)) == builders.names(story.pods)
    assert (made.status["phase"], made.status["reason"]) == ("Restarting", "Resizing")
    saving = [builders.deleting(one) for one in story.pods]
    others = [one for one in story.children.objects if one["kind"] != "Pod"]
    job = story.job
    assert plan_answered(job, Children((*others, *saving)), at(11)).actions == ()
    saving[1:] = [{**one, "status": builders.ended(143)} for one in saving[1:]]
    assert plan_answered(job, Children((*others, *saving)), at(12)).actions == ()
    saving[0]["status"] = builders.ended(143)
    last = plan_answered(job, Children((*others, *saving)), at(13))
    new = [one for one in last.actions if isinstance(one, Create) and one.kind == "Pod"]
    assert sorted(one.name for one in new if "worker" in one.name) == ["digits-worker-0-1", "digits-worker-1-1"]
    assert "Create" in {type(one).__name__ for one in last.actions if getattr(one, "kind", "") == "ConfigMap"}
    if program:
        assert len({config_map(one.manifest) for one in new}) == 1
        assert config_map(new[0].manifest) != config_map(story.pods[0])


def test_a_pod_on_a_lost_node_is_waited_for_until_it_counts_as_lost() -> None:
    story = scaled(2)
    story.write(at(10))
    stuck = builders.deleting(next(one for one in story.pods if "worker-3" in one["metadata"]["name"]), at(10))
    job, children = story.job, Children((stuck,))
    waits = plan_answered(job, children, at(30))
    assert waits.actions == ()
    assert waits.look_again_at is not None
    assert plan_answered(job, children, waits.look_again_at).actions != ()


def test_a_pod_that_could_not_be_made_blocks_a_group_that_ends_no_longer() -> None:
    story = Story()
    story.run()
    there = story.children
    story.children = replace(there, objects=(), problems={"Pod/digits-worker-1-1": "exceeded quota: small"})
    story.write(at(5))
    assert story.stands[1] == "CannotCreate"
    story.children = there
    story.change(replicas=2)
    story.write(at(10))
    assert (story.stands, story.own("Blocked")) == (("Restarting", "Resizing"), ("False", "Resizing"))


def test_a_failure_comes_before_a_resize() -> None:
    story = Story()
    story.run()
    story.becomes("worker-1-0", builders.ended(1))
    story.change(replicas=2)
    story.look(at(10))
    assert story.job.status["restarts"]["total"] == 1
    story.settle(at(11))
    assert story.tasks == ["chief-0-2", "worker-0-2", "worker-1-2"]
    assert story.job.status["restarts"]["total"] == 1


def test_the_count_may_change_while_the_group_ends() -> None:
    story = scaled(3)
    story.write(at(10))
    story.change(replicas=2)
    story.settle(at(11))
    assert story.tasks == ["chief-0-1", "worker-0-1", "worker-1-1"]


def test_a_count_that_is_raised_while_the_group_shrinks_for_want_of_room_is_tried_at_once() -> None:
    story = without_room("worker-2-0", "worker-3-0")
    story.write(at(300))
    assert story.workers["resizing"]["to"] == 2
    story.change(replicas=5)
    story.settle(at(301))
    story.run(at(302))
    assert story.workers["replicas"] == 2
    assert story.placeholders == [f"digits-worker-{index}-placeholder" for index in (2, 3, 4)]


@pytest.mark.parametrize("mount", ["Chief", "All"])
def test_the_evaluator_goes_only_where_it_has_to_follow_the_chief(mount: str) -> None:
    story = scaled(2, evaluator=True, checkpoint={"storage": {**CLAIM["storage"], "mountOn": mount}})
    story.settle(at(10))
    assert story.tasks[1] == ("evaluator-0-1" if mount == "Chief" else "evaluator-0-0")
    story.run(at(20))
    assert story.job.status["ready"] == "4/4"


def test_a_suspended_job_has_no_placeholders_and_goes_on_with_what_its_spec_says() -> None:
    story = Story().shrunk()
    story.settle(at(900))
    assert story.placeholders
    story.change(suspend=True)
    story.settle(at(1000))
    assert story.pods == []
    story.change(suspend=False, replicas=3)
    story.settle(at(2000))
    story.run(at(2001))
    assert len([one for one in story.tasks if one.startswith("worker")]) == 3
    assert (story.workers["replicas"], story.workers["reason"]) == (3, "AsDesired")


def test_a_job_that_is_suspended_while_its_group_ends_forgets_the_resize() -> None:
    story = scaled(2)
    story.write(at(10))
    story.change(suspend=True)
    story.settle(at(20))
    assert "resizing" not in story.workers
    story.change(suspend=False, replicas=5)
    story.run(at(30))
    assert len([one for one in story.tasks if one.startswith("worker")]) == 5


@pytest.mark.parametrize("replicas", [2, 6])
def test_a_job_goes_on_with_another_number_only_when_the_group_before_has_ended(replicas: int) -> None:
    story = Story()
    story.run()
    story.change(suspend=True)
    story.write(at(10))  # a webhook lets no pod be deleted
    story.change(suspend=False, replicas=replicas)
    made = story.write(at(20))
    assert {type(one) for one in made.actions} == {Delete}
    assert sorted(one.name for one in made.actions if isinstance(one, Delete)) == builders.names(story.pods)
    assert (story.stands, story.workers["replicas"]) == (("Restarting", "Resizing"), 4)
    story.settle(at(30))
    workers = [one for one in story.tasks if one.startswith("worker")]
    assert workers == [f"worker-{index}-2" for index in range(replicas)]
    assert story.job.status["restarts"]["total"] == 0


def test_an_ended_job_keeps_no_placeholder() -> None:
    story = Story(cleanPodPolicy="None").shrunk()
    story.settle(at(900))
    assert story.placeholders
    story.becomes("chief-0-1", builders.ended(0))
    story.settle(at(910))
    assert story.job.status["phase"] == "Succeeded"
    assert (story.placeholders, len(story.tasks)) == ([], 3)


def test_a_deadline_holds_while_the_group_ends() -> None:
    story = scaled(2, activeDeadlineSeconds=100)
    story.write(at(50))
    saving = tuple(builders.deleting(one, at(50)) for one in story.pods)
    last = plan_answered(story.job, Children(saving), at(101))
    assert (last.status["phase"], last.status["reason"]) == ("Failed", "DeadlineExceeded")


def test_the_pods_that_an_hpa_counts_are_the_workers() -> None:
    story = Story().shrunk()
    story.settle(at(900))
    wanted: dict[str, Any] = dict(part.split("=") for part in story.workers["selector"].split(","))
    counted = [one for one in story.pods if wanted.items() <= labels.of(one).items()]
    assert builders.names(counted) == ["digits-worker-0-1", "digits-worker-1-1"]
    assert story.workers["replicas"] == len(counted)


def test_a_group_that_ends_as_it_starts_looks_for_no_room() -> None:
    """All of it runs for the first time, and more are wanted, by one and the same look."""
    story = Story()
    story.settle(NOW)
    for name in story.tasks:
        story.becomes(name, builders.running())
    story.change(replicas=6)
    story.look(at(10))
    assert story.job.status["phase"] == "Restarting"
    assert story.placeholders == []
    story.run(at(11))
    assert (len(story.tasks), story.placeholders, story.job.status["phase"]) == (7, [], "Running")


def test_an_unlisted_chief_is_looked_up_before_a_new_group_is_created() -> None:
    """Its next attempt is so many later that it would not be looked for: its pod has lost its labels while it saves."""
    story = Story()
    story.run()
    for number in range(7):
        story.becomes(f"worker-1-{number}", builders.disrupted(when=at(1000 * number)))
        story.settle(at(1000 * number))
        story.settle(at(1000 * number + 600))
        story.run(at(1000 * number + 601))
    story.change(replicas=3)
    story.write(at(20000))
    shared = tuple(one for one in story.children.objects if one["kind"] != "Pod")
    assert builders.asked(story.job, replace(story.children, objects=shared), at(20010)) == ("digits-chief-0-0",)


MARKED = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
TAKEN = [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]


@pytest.mark.parametrize("conditions", [[], MARKED, TAKEN], ids=["nothing said", "silent node", "taken by its taint"])
def test_a_pod_that_a_resize_lost_explains_no_incident_of_days_before(conditions: list[dict[str, str]]) -> None:
    story, later = Story(), 3 * 86400
    story.run()
    story.becomes("worker-1-0", builders.ended(76, at(100)))
    story.settle(at(101))
    story.run(at(102))
    before = {name: story.job.status[name] for name in ("restarts", "lastFailure")}
    story.change(replicas=3)
    story.write(at(later))
    (dead,) = (builders.deleting(pod, at(later), 30) for pod in story.pods if labels.task_id(pod) == "worker-0")
    dead["spec"]["nodeName"] = "dead"
    dead["status"] = {**dead["status"], "conditions": conditions}
    shared = tuple(one for one in story.children.objects if one["kind"] != "Pod")
    story.children = replace(story.children, objects=(*shared, dead))
    for seconds in (60, 61, 62):
        story.look(at(later + seconds))
    assert {name: story.job.status[name] for name in before} == before
    assert story.job.status["internal"]["incident"].get("charged", 0) == 1
