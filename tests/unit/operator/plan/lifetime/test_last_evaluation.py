# SPDX-License-Identifier: Apache-2.0
"""An evaluator that is not at work when training succeeds still gets to what was saved last."""

from datetime import datetime
from typing import Any

import pytest

from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create, Delete, Plan
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.story import Story

HOUR = 3600
VOLUME = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "digits"}}}}


def pod_calls(made: Plan) -> list[str]:
    return builders.in_words(one for one in made.actions if isinstance(one, Create | Delete) and one.kind == "Pod")


class Life(Story):
    """A job from the plan that sees its success on."""

    def __init__(self, evaluator: dict[str, Any] | None, **spec: Any) -> None:
        super().__init__(builders.job("Mirrored", evaluator=True, **spec))
        self.run(at(-100))
        self.becomes("chief-0-0", builders.ended(0))
        if evaluator is None:
            self.lose("digits-evaluator-0-0")
        else:
            self.becomes("evaluator-0-0", evaluator)

    def becomes(self, name: str, status: dict[str, Any]) -> None:
        super().becomes(name, status)
        if status["phase"] == "Pending" and "conditions" in status:
            self.pod(name)["spec"].pop("nodeName", None)

    def pod(self, name: str) -> Manifest:
        return next(one for one in self.pods if one["metadata"]["name"] == f"digits-{name}")

    def after(self, now: datetime) -> Plan:
        """One plan, carried out, after which nothing is left to do."""
        made = self.look(now)
        counted = self.write(now)  # what was made is counted now
        assert counted.actions == (), "it asks for more when all is done"
        assert self.plan(now).status is None
        assert self.stands[0] == "Succeeded"
        assert self.job.status["completionTime"] == "2026-11-21T10:00:00Z"
        return made

    def given_up(self) -> str | None:
        for one in self.job.status["conditions"]:
            if one["type"] == "EvaluationGivenUp" and one["status"] == "True":
                return str(one["message"])
        return None


@pytest.mark.parametrize("clean", ["Running", "All", "None"])
def test_an_evicted_evaluator_is_replaced(clean: str):
    life = Life(builders.evicted(), cleanPodPolicy=clean)
    made = life.after(NOW)
    assert "create digits-evaluator-0-1" in pod_calls(made)
    assert [event.reason for event in made.events] == ["Succeeded", "EvaluatorRestarting"]
    life.becomes("evaluator-0-1", builders.running())
    assert pod_calls(life.after(at(50 * HOUR))) == []
    life.becomes("evaluator-0-1", builders.ended(0, message='{"evaluation": {"step": 460}}'))
    assert pod_calls(life.after(at(51 * HOUR))) == (["delete digits-evaluator-0-1"] if clean == "All" else [])
    assert life.job.status["evaluation"] == {"step": 460}
    life.lose("digits-evaluator-0-1") if clean != "All" else None
    assert pod_calls(life.after(at(52 * HOUR))) == [], "it has finished, wherever its pod is"
    assert life.given_up() is None


def test_an_evaluator_that_pulls_its_image_is_waited_for_and_given_up_after_an_hour():
    life = Life(builders.waiting("ErrImagePull", "not found"))
    made = life.after(NOW)
    assert (pod_calls(made), made.look_again_at) == ([], at(300)), "a clock may be set meanwhile"
    assert pod_calls(life.after(at(HOUR - 1))) == []
    assert life.given_up() is None
    made = life.after(at(HOUR))
    assert pod_calls(made) == ["delete digits-evaluator-0-0"]
    assert [(event.type, event.reason, event.message) for event in made.events] == [
        ("Warning", "EvaluationGivenUp", life.given_up())
    ]
    assert pod_calls(life.after(at(2 * HOUR))) == [], "given up is given up"


def test_an_evaluator_that_was_given_up_may_still_run_if_its_pod_is_kept():
    life = Life(builders.waiting("ErrImagePull"), cleanPodPolicy="None")
    life.after(NOW)
    assert pod_calls(life.after(at(HOUR))) == []
    assert life.given_up() is not None
    life.becomes("evaluator-0-0", builders.running())
    life.after(at(2 * HOUR))
    assert life.given_up() is None


@pytest.mark.parametrize("mount", ["Chief", "All"])
def test_an_evaluator_that_waits_for_the_chiefs_node_is_replaced_without_its_affinity(mount: str):
    """The scheduler counts no pod that has ended: it would wait for ever."""
    life = Life(builders.unschedulable(), checkpoint={"storage": {**VOLUME["storage"], "mountOn": mount}})
    assert ("affinity" in life.pod("evaluator-0-0")["spec"]) == (mount == "Chief")
    made = life.after(NOW)
    if mount == "All":
        assert pod_calls(made) == []
        return
    assert sorted(pod_calls(made)) == ["create digits-evaluator-0-1", "delete digits-evaluator-0-0"]
    assert "affinity" not in life.pod("evaluator-0-1")["spec"]
    assert life.job.status["restarts"].get("evaluator", 0) == 0
    life.becomes("evaluator-0-1", builders.unschedulable())
    assert pod_calls(life.after(at(10))) == [], "once is enough"
    assert pod_calls(life.after(at(HOUR))) == ["delete digits-evaluator-0-1"]
    assert "Unschedulable" in (life.given_up() or "")


def test_an_evaluator_that_waits_for_the_chiefs_node_is_replaced_if_only_its_pod_tells_its_attempt():
    job = builders.job("Mirrored", evaluator=True, checkpoint=VOLUME)
    chief = builders.pod(job, "chief-0", builders.ended(0))
    evaluator = builders.pod(job, "evaluator-0", builders.unschedulable(), attempt=1)
    evaluator["spec"].pop("nodeName", None)
    made = builders.plan_answered(job, Children((chief, evaluator)), NOW)
    assert sorted(pod_calls(made)) == ["create digits-evaluator-0-2", "delete digits-evaluator-0-1"]


@pytest.mark.parametrize("follows", [True, False])
def test_a_missing_evaluator_is_created(follows: bool):
    life = Life(None, **({"checkpoint": VOLUME} if follows else {}))
    assert pod_calls(life.after(NOW)) == ["create digits-evaluator-0-1"], "somebody deleted the one before"
    life.lose("digits-evaluator-0-1")
    assert pod_calls(life.after(at(10))) == ["create digits-evaluator-0-1"]


def test_the_shared_objects_of_an_evaluators_pod_are_created_with_it():
    life = Life(builders.evicted())
    life.children = Children(tuple(life.pods))
    made = life.after(NOW)
    kinds = [one.kind for one in made.actions if isinstance(one, Create)]
    assert sorted(kinds) == ["ConfigMap", "NetworkPolicy", "Pod", "Service"]


def test_an_evaluator_that_fails_by_itself_is_tried_once_more():
    """What it reads changes no more: it would fail for ever."""
    life = Life(builders.ended(1))
    assert "create digits-evaluator-0-1" in pod_calls(life.after(NOW))
    life.becomes("evaluator-0-1", builders.running())
    life.after(at(5))
    life.becomes("evaluator-0-1", builders.ended(1, at(9)))
    made = life.after(at(10))
    assert pod_calls(made) == []
    assert "evaluator-0 failed (exit code 1) after training had ended" in life.given_up()


@pytest.mark.parametrize("action", ["Restart", "RestartAndIgnoreMaxRestarts"])
def test_an_evaluator_that_a_rule_restarts_is_tried_until_the_deadline(action: str):
    """Its storage is away for a while, say: whoever wrote the rule knows that."""
    rule = {"action": action, "onExitCodes": {"operator": "In", "values": [5]}, "roles": ["evaluator"]}
    life = Life(builders.ended(5), failurePolicy={"rules": [rule]})
    assert "create digits-evaluator-0-1" in pod_calls(life.after(NOW))
    now, attempt = 0, 1
    while life.given_up() is None:
        life.becomes(f"evaluator-0-{attempt}", builders.ended(5, at(now)))
        now += 300
        attempt += any(call == f"create digits-evaluator-0-{attempt + 1}" for call in pod_calls(life.after(at(now))))
    assert now == HOUR
    assert attempt > 5
    assert "was not at work 60 min after training had ended (evaluator-0 failed (exit code 5)" in life.given_up()


def test_an_evaluator_of_another_image_is_not_made_again():
    """Nobody knows whether it would ever end."""
    life = Life(builders.evicted(), program=False)
    assert [call for call in pod_calls(life.after(NOW)) if call.startswith("create")] == []
    assert life.given_up() is None


@pytest.mark.parametrize("now", [at(60), at(90_000)])
def test_a_job_that_succeeded_is_left_alone_if_what_the_operator_remembered_is_lost(now: datetime):
    """Its status does not say who had finished: the evaluator's pod may have been removed after its work."""
    life = Life(builders.ended(0))
    life.after(NOW)
    job = builders.forgotten(life.job)
    for gone in ((), ("digits-evaluator-0-0",)):
        pods = tuple(one for one in life.children.objects if one["metadata"]["name"] not in gone)
        made = plan(job, Children(pods), now)
        assert pod_calls(made) == []
        assert "finished" not in (made.status or {}).get("internal", {})
        assert made.events == ()


def test_a_list_from_before_the_end_takes_no_task_from_those_that_had_finished():
    """An API server that lags may give such a list to an operator that has just started."""
    life = Life(builders.ended(0))
    life.after(NOW)
    finished = life.job.status["internal"]["finished"]
    assert finished
    for name in ("chief-0-0", "evaluator-0-0"):
        life.becomes(name, builders.running())
    life.after(at(1))
    assert life.job.status["internal"]["finished"] == finished


def test_an_evaluator_whose_node_dies_after_the_jobs_end_is_replaced_in_time():
    life = Life(builders.running())
    assert life.after(NOW).look_again_at is None
    pod = life.pod("evaluator-0-0")
    pod["metadata"] |= builders.deleting(pod, at(10))["metadata"]
    made = life.after(at(10))
    assert made.look_again_at is not None
    assert "create digits-evaluator-0-1" in pod_calls(life.after(made.look_again_at))
