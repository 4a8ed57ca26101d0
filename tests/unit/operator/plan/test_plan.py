# SPDX-License-Identifier: Apache-2.0
"""plan: what each situation asks for. What holds in every situation is in test_plan_properties.py."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects import labels, topology
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Create
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.plan.history import History
from tests.unit.operator.story import Story


def running(job: Job) -> Story:
    """The job whose tasks all run."""
    story = Story(job)
    story.run()
    assert story.stands[0] == "Running"
    return story


def test_a_new_job_gets_its_shared_objects_before_its_pods():
    made = plan(builders.job(), Children(), NOW)
    kinds = [one.kind for one in made.actions if isinstance(one, Create)]
    assert kinds == ["Service", "NetworkPolicy", "ConfigMap", *["Pod"] * 3]
    assert builders.pods_made(made) == ["digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0"]
    assert (made.status["phase"], made.status["ready"]) == ("Pending", "0/3")


def test_a_running_job_asks_for_nothing():
    made = running(builders.job(evaluator=True)).plan(NOW)
    assert (made.actions, made.status, made.look_again_at) == ((), None, None)


def test_an_evaluator_of_its_chiefs_volume_goes_where_the_chief_is_now():
    volume = {"persistentVolumeClaim": {"claimName": "digits"}}
    job = builders.job("Mirrored", evaluator=True, checkpoint={"storage": {"volume": volume}})
    story = running(builders.with_status(job, builders.at_attempts({"chief-0": 1})))
    story.becomes("evaluator-0-0", builders.ended(1, at(60)))
    made = story.plan(at(60))
    (evaluator,) = (one.manifest for one in made.actions if isinstance(one, Create))
    assert evaluator["metadata"]["name"] == "digits-evaluator-0-1"
    (term,) = evaluator["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    wanted = term["labelSelector"]["matchLabels"]
    (chief,) = (one for one in story.pods if one["metadata"]["name"] == "digits-chief-0-1")
    assert wanted.items() <= labels.of(chief).items()
    assert wanted[labels.ATTEMPT] == "1"


@pytest.mark.parametrize(
    ("job", "code", "phase", "ready", "later"),
    [
        (builders.job(failurePolicy={"maxRestartsWithoutProgress": 0}), 1, "Failed", "2/3", "0/3"),
        (builders.job("ParameterServer", ps=1), 0, "Succeeded", "4/4", "4/4"),
    ],
    ids=["failed", "succeeded"],
)
def test_a_failed_job_says_how_many_tasks_are_left_and_a_succeeded_one_how_many_there_were(
    job: Job, code: int, phase: str, ready: str, later: str
):
    story = running(job)
    story.becomes("chief-0-0", builders.ended(code))
    story.write(at(1))
    assert (story.stands[0], story.job.status["ready"]) == (phase, ready)
    story.lose(*(f"digits-{name}" for name in story.tasks if name != "chief-0-0"))
    story.write(at(30))
    assert story.job.status["ready"] == later


def test_an_ended_job_is_not_blocked():
    story = running(builders.job(evaluator=True))
    story.lose("digits-evaluator-0-0")
    story.children = replace(story.children, problems={"Pod/digits-evaluator-0-0": "exceeded quota: small"})
    story.write(at(1))
    assert "exceeded quota: small" in story.job.status["message"]
    story.children = replace(story.children, problems={})
    story.becomes("chief-0-0", builders.ended(0, at(2)))
    story.write(at(2))
    assert (story.own("Complete")[0], story.own("Blocked")[0]) == ("True", "False")


@pytest.mark.parametrize("state", [builders.running(), builders.ended(0)], ids=["running", "succeeded"])
def test_every_condition_says_of_which_generation_it_speaks(state: dict[str, Any]):
    """Also after a change of the spec that changes nothing else, such as one of an ended job's cleanPodPolicy."""
    job = builders.job()
    pods, others = builders.all_pods(job, state), map(builders.stored, shared_objects(job))
    blocked = {"Service/digits": "exists and is not this job's"}
    children = Children((*pods.values(), *others), problems=blocked)
    changed = job.metadata.model_copy(update={"generation": 2})
    for generation, metadata in ((1, job.metadata), (2, changed)):
        job = job.model_copy(update={"metadata": metadata})
        status = plan(job, children, at(generation)).status
        assert {one["observedGeneration"] for one in status["conditions"]} == {generation}
        job = builders.with_status(job, status)


def test_a_group_restart_of_a_big_job_is_a_small_status():
    history = History(builders.job(workers=399, program=False, evaluator=True))
    history.ends("worker-17", builders.out_of_memory(at(1)))
    history.look(at(2))
    status = history.job.status
    assert status["internal"]["attempts"] == {"others": 1, "exceptions": {"evaluator-0": 0}}
    assert len(json.dumps(status, separators=(",", ":"))) < 2200
    history.end_what_is_deleted()
    history.look(at(700))
    history.look(at(701))
    assert history.stands[0] == "Running"
    assert {topology.attempt_of(pod) for pod in history.pods if labels.task_id(pod) != "evaluator-0"} == {1}


def test_a_succeeded_job_counts_as_ready_its_tasks_that_were_not_seen_to_run():
    job = builders.job("Mirrored")
    waiting = builders.plan_answered(job, Children((builders.pod(job, "chief-0"),)), at(1))
    ended = {**builders.pod(job, "chief-0"), "status": builders.ended(0, at(2))}
    over = builders.plan_answered(builders.with_status(job, waiting.status or {}), Children((ended,)), at(3))
    assert (over.status["phase"], over.status["ready"]) == ("Succeeded", "1/1")
    later = builders.plan_answered(builders.with_status(job, over.status), Children(()), at(300))
    assert later.status is None or later.status["ready"] == "1/1"


def test_the_end_of_an_incident_is_no_reason_to_write_the_status():
    history = History(builders.job())
    history.ends("worker-1", builders.out_of_memory(at(1)))
    history.look(at(1))
    history.end_what_is_deleted()
    history.look(at(2))
    history.look(at(3))
    assert history.stands[0] == "Running"
    assert history.plan(at(100)).status is None
