# SPDX-License-Identifier: Apache-2.0
"""plan: what each situation asks for. What holds in every situation is in test_plan_properties.py."""

import json
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create, Delete, Plan, StopServing
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.plan.history import History


def created(made: Plan) -> list[str]:
    return [f"{one.kind}/{one.name}" for one in made.actions if isinstance(one, Create)]


def created_pods(made: Plan) -> list[str]:
    return [name.removeprefix("Pod/") for name in created(made) if name.startswith("Pod/")]


def deleted(made: Plan) -> list[str]:
    return [one.name for one in made.actions if isinstance(one, Delete)]


def unserved(made: Plan) -> list[str]:
    return [one.name for one in made.actions if isinstance(one, StopServing)]


def shared(job: Job) -> list[Manifest]:
    """The job's Service, ConfigMap and NetworkPolicy, as stored."""
    from dtjob.objects.shared import shared_objects

    return [builders.stored(one) for one in shared_objects(job)]


def running_job(job: Job) -> tuple[Job, dict[str, Manifest], list[Manifest]]:
    """The job with the status of one whose tasks all run, its pods by task id and its other objects."""
    pods, others = builders.all_pods(job), shared(job)
    status = plan(job, Children((*pods.values(), *others)), NOW).status
    assert status["phase"] == "Running"
    return builders.with_status(job, status), pods, others


def plan_with(job: Job, pods: dict[str, Manifest], others: list[Manifest], now: Any = NOW) -> Plan:
    return builders.plan_answered(job, Children((*pods.values(), *others)), now)


def test_a_new_job_gets_its_shared_objects_before_its_pods():
    made = plan(builders.job(), Children(), NOW)
    assert [name.split("/")[0] for name in created(made)] == ["Service", "NetworkPolicy", "ConfigMap", *["Pod"] * 3]
    assert created_pods(made) == ["digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0"]
    assert (made.status["phase"], made.status["ready"]) == ("Pending", "0/3")


def test_a_running_job_asks_for_nothing():
    job, pods, others = running_job(builders.job(evaluator=True))
    made = plan_with(job, pods, others)
    assert (made.actions, made.status, made.look_again_at) == ((), None, None)


def test_a_replaced_pod_whose_sidecar_still_runs_loses_its_host_name():
    """EndpointSlices list a pod until all its containers have ended: both attempts would answer to one name."""
    job, pods, others = running_job(builders.job())
    pods["worker-0"]["status"] = {**builders.out_of_memory(), "phase": "Running"}
    assert unserved(plan_with(job, pods, others, at(1))) == ["digits-worker-0-0"]


def test_a_new_chief_takes_the_evaluator_along_to_its_node():
    """The old one would hold a ReadWriteOnce volume on its node until the run is done, and the chief would wait."""
    volume = {"persistentVolumeClaim": {"claimName": "digits"}}
    checkpoint = {"storage": {"volume": volume}}
    job, pods, others = running_job(builders.job("Mirrored", evaluator=True, checkpoint=checkpoint))
    pods["chief-0"]["status"] = builders.disrupted()
    made = plan_with(job, pods, others, at(1))
    assert created_pods(made) == ["digits-chief-0-1"]
    assert sorted(deleted(made)) == ["digits-chief-0-0", "digits-evaluator-0-0"]
    assert made.status["restarts"] == {"total": 1, "causes": {"Disruption": 1}}
    job = builders.with_status(job, made.status)
    alone = {"chief-0": builders.all_pods(job)["chief-0"]}
    assert created_pods(plan_with(job, alone, others, at(1))) == ["digits-evaluator-0-1"]
    pods = builders.all_pods(job)
    pods["evaluator-0"]["status"] = builders.ended(1, at(60))
    made = plan_with(job, pods, others, at(60))  # by itself it goes where the chief is now
    (evaluator,) = (one.manifest for one in made.actions if isinstance(one, Create))
    assert evaluator["metadata"]["name"] == "digits-evaluator-0-2"
    (term,) = evaluator["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    chief = labels.of(pods["chief-0"])
    assert term["labelSelector"]["matchLabels"].items() <= chief.items()
    assert term["labelSelector"]["matchLabels"][labels.ATTEMPT] == chief[labels.ATTEMPT] == "1"


def test_a_worker_that_finishes_just_after_the_chief_failed_comes_back_and_costs_nothing():
    job, pods, others = running_job(builders.job())
    pods["chief-0"]["status"] = builders.out_of_memory(at(1))
    first = plan_with(job, pods, others, at(1))
    assert first.status is not None
    job = builders.with_status(job, first.status)
    pods["chief-0"] = builders.pod(job, "chief-0", builders.running(), attempt=1, created=at(2))
    pods["worker-1"]["status"] = builders.ended(0, at(2))
    made = plan_with(job, pods, others, at(3))
    assert (created_pods(made), deleted(made)) == (["digits-worker-1-1"], ["digits-worker-1-0"])
    assert {name: made.status[name] for name in ("restarts", "lastFailure")} == {
        name: first.status[name] for name in ("restarts", "lastFailure")
    }
    assert made.status["internal"]["incident"] == first.status["internal"]["incident"]


def test_a_failed_job_says_how_many_tasks_are_left_and_a_succeeded_one_how_many_there_were():
    job, pods, others = running_job(builders.job(failurePolicy={"maxRestartsWithoutProgress": 0}))
    pods["chief-0"]["status"] = builders.ended(1)
    failed = plan_with(job, pods, others, at(1)).status
    assert (failed["phase"], failed["ready"]) == ("Failed", "2/3")
    left = plan_with(builders.with_status(job, failed), {"chief-0": pods["chief-0"]}, others, at(30)).status
    assert left["ready"] == "0/3"
    job, pods, others = running_job(builders.job("ParameterServer", ps=1))
    pods["chief-0"]["status"] = builders.ended(0)
    succeeded = plan_with(job, pods, others, at(1)).status
    assert succeeded is not None
    left = plan_with(builders.with_status(job, succeeded), {"chief-0": pods["chief-0"]}, others, at(30)).status
    assert (succeeded["ready"], left["ready"]) == ("4/4", "4/4")


def test_an_ended_job_is_not_blocked():
    job, pods, others = running_job(builders.job(evaluator=True))
    evaluator = pods.pop("evaluator-0")
    problems = {f"Pod/{evaluator['metadata']['name']}": "exceeded quota: small"}
    blocked = builders.plan_answered(job, Children((*pods.values(), *others), {}, problems), at(1)).status
    assert "exceeded quota: small" in blocked["message"]
    pods["chief-0"]["status"] = builders.ended(0, at(2))
    made = plan_with(builders.with_status(job, blocked), pods, others, at(2))
    held = {one["type"]: one["status"] for one in made.status["conditions"]}
    assert (held["Complete"], held["Blocked"]) == ("True", "False")


@pytest.mark.parametrize("state", [builders.running(), builders.ended(0)], ids=["running", "succeeded"])
def test_every_condition_says_of_which_generation_it_speaks(state: dict[str, Any]):
    """Also after a change of the spec that changes nothing else, such as one of an ended job's cleanPodPolicy."""
    job = builders.job()
    pods, others = builders.all_pods(job, state), shared(job)
    blocked = {"Service/digits": "exists and is not this job's"}
    children = Children((*pods.values(), *others), problems=blocked)
    changed = job.metadata.model_copy(update={"generation": 2})
    for generation, metadata in ((1, job.metadata), (2, changed)):
        job = job.model_copy(update={"metadata": metadata})
        status = plan(job, children, at(generation)).status
        assert {one["observedGeneration"] for one in status["conditions"]} == {generation}
        job = builders.with_status(job, status)


def test_the_plan_for_a_job_of_another_controller_is_empty():
    job = builders.job(managedBy="kueue.x-k8s.io/multikueue")
    failed = builders.pod(job, "chief-0", builders.ended(1))
    assert plan(job, Children((failed,)), NOW) == Plan()
    assert plan(builders.job(), Children((failed,)), NOW) != Plan()


def test_a_group_restart_of_a_big_job_is_a_small_status():
    history = History(builders.job(workers=399, program=False, evaluator=True))
    history.ends("worker-17", builders.out_of_memory(at(1)))
    status = history.look(at(2))
    assert status["internal"]["attempts"] == {"others": 1, "exceptions": {"evaluator-0": 0}}
    assert len(json.dumps(status, separators=(",", ":"))) < 2200
    old = [name for name in history.pods if name.endswith("-0") and "evaluator" not in name]
    history.goes(*old)
    history.look(at(700))
    status = history.look(at(701))
    assert status["phase"] == "Running"
    assert {topology.attempt_of(pod) for pod in history.pods.values() if labels.task_id(pod) != "evaluator-0"} == {1}


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
    assert history.look(at(3))["phase"] == "Running"
    assert history.plan(at(100)).status is None
