# SPDX-License-Identifier: Apache-2.0
"""When a PodGroup is made, put right and given up, and which pods are its members."""

from dataclasses import replace
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.api.spec.scheduling import GangProvider
from dtjob.objects import gangs
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create, Delete, Plan, Repair
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

KIND = gangs.KINDS[GangProvider.KUBERNETES]


def gang_job(provider: str = "Kubernetes", **more: Any) -> Job:
    """A chief, three workers and an evaluator, of an image of their own: whoever fails is replaced by itself."""
    gang = {"provider": provider, **more.pop("gang", {})}
    return builders.job("ParameterServer", workers=2, ps=1, evaluator=True, scheduling={"gang": gang}, **more)


def stored_group(job: Job, version: str = "scheduling.k8s.io/v1beta1", at_most: int | None = None) -> Manifest:
    made = gangs.pod_group(job, at_most=at_most)
    assert made is not None
    return builders.stored({**made, "apiVersion": version})


def settled(job: Job, group: Manifest | None, **pods: Any) -> tuple[Job, Children]:
    """The job with its status and what it has, as after a plan that was carried out; `pods` by task (with `_`)."""
    there = builders.all_pods(job) | {name.replace("_", "-"): pod for name, pod in pods.items()}
    objects = [*(pod for pod in there.values() if pod is not None), *([group] if group else [])]
    made = builders.plan_answered(job, Children(tuple(objects)))
    return builders.with_status(job, made.status or job.status), Children(tuple(objects))


def of(made: Plan, kind: type[Any]) -> list[Any]:
    return [one for one in made.actions if isinstance(one, kind) and gangs.is_pod_group(one.kind)]


def pods_made(made: Plan) -> dict[str, Manifest]:
    found = (one for one in made.actions if isinstance(one, Create) and one.kind == "Pod")
    return {one.name: one.manifest for one in found}


def pods_made_after_others(job: Job) -> dict[str, Manifest]:
    """The pods that are made once those that train are there."""
    return pods_made(plan(job, builders.carried_out(Children(), plan(job, Children(), NOW)), NOW))


def test_a_pod_group_is_created_with_the_first_pods_which_are_its_members():
    made = plan(gang_job(), Children(), NOW)
    (create,) = of(made, Create)
    assert (create.kind, create.name, builders.gang_minimum(create.manifest)) == (KIND, "digits", 4)
    members = {name for name, pod in pods_made(made).items() if "schedulingGroup" in pod["spec"]}
    assert members == {"digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0", "digits-ps-0-0"}
    (evaluator,) = pods_made_after_others(gang_job()).values()
    assert "schedulingGroup" not in evaluator["spec"]
    assert made.status["gang"] == {"provider": "Kubernetes", "minAvailable": 4}


def test_a_later_default_reaches_no_job_that_has_begun():
    unnamed = builders.job(scheduling={"gang": {}})
    began = builders.with_status(unnamed, plan(unnamed, Children(), NOW).status or {})
    later = replace(NO_DEFAULTS, gang_provider=GangProvider.VOLCANO)
    (create,) = of(plan(began, Children(), NOW, later), Create)
    assert create.kind == KIND
    (other,) = of(plan(unnamed, Children(), NOW, later), Create)
    assert other.kind == gangs.KINDS[GangProvider.VOLCANO]


def test_a_pod_group_that_is_gone_or_going_or_not_the_jobs_is_created_again():
    began, children = settled(gang_job(), None)
    others = stored_group(began)
    others["metadata"]["ownerReferences"] = []
    for there in ((), (builders.deleting(stored_group(began)),), (others,)):
        assert len(of(builders.plan_answered(began, Children((*children.objects, *there))), Create)) == 1


@pytest.mark.parametrize("provider", ["Volcano", "Coscheduling", "Kubernetes"])
def test_a_pod_group_is_repaired_only_while_a_pod_waits(provider: str):
    began = gang_job(provider)
    version = {"Volcano": "scheduling.volcano.sh/v1beta1", "Kubernetes": "scheduling.k8s.io/v1beta1"}.get(provider, "x")
    wrong = stored_group(began, version, at_most=1)
    running, children = settled(began, wrong)
    assert of(builders.plan_answered(running, children), Repair) == []
    waiting = builders.all_pods(began, builders.unschedulable())["worker-0"]
    waits, children = settled(began, wrong, worker_0=waiting)
    (repair,) = of(builders.plan_answered(waits, children), Repair)
    assert builders.gang_minimum(repair.manifest) == 4


def test_a_pod_group_is_deleted_for_a_suspension_and_created_again_after_it():
    began, children = settled(gang_job(), stored_group(gang_job()))
    made = plan(builders.suspending(began), children, NOW)
    (delete,) = of(made, Delete)
    assert delete.uid == children.objects[-1]["metadata"]["uid"]
    resumed = builders.with_status(began, made.status or {})
    again = builders.plan_answered(resumed, Children())
    assert len(of(again, Create)) == 1
    assert all("schedulingGroup" in pod["spec"] for name, pod in pods_made(again).items() if "evaluator" not in name)


def test_a_pod_group_is_deleted_when_its_job_has_ended():
    began, children = settled(
        gang_job(), stored_group(gang_job()), chief_0=builders.all_pods(gang_job(), builders.ended())["chief-0"]
    )
    done = builders.plan_answered(began, children)
    ended_job = builders.with_status(began, done.status or began.status)
    assert ended_job.status["phase"] == "Succeeded"
    assert len(of(done if of(done, Delete) else builders.plan_answered(ended_job, children), Delete)) == 1
    gone = Children(tuple(one for one in children.objects if one["kind"] != KIND))
    assert of(builders.plan_answered(ended_job, gone), Delete) == []


def test_an_evaluator_beside_the_chief_is_made_when_the_chief_has_a_node():
    volume = {"checkpoint": {"storage": {"volume": {"emptyDir": {}}, "mountPath": "/c"}}}
    beside = gang_job(**volume)
    assert "digits-evaluator-0-0" not in pods_made_after_others(beside)
    everywhere = gang_job(checkpoint={"storage": {**volume["checkpoint"]["storage"], "mountOn": "All"}})
    assert "digits-evaluator-0-0" in pods_made_after_others(everywhere)
    no_gang = builders.job(evaluator=True, **volume)
    assert "digits-evaluator-0-0" in pods_made_after_others(no_gang)

    waiting = {name.replace("-", "_"): pod for name, pod in builders.all_pods(beside, builders.unschedulable()).items()}
    for pod in waiting.values():
        pod["spec"].pop("nodeName", None)
    held, children = settled(beside, stored_group(beside), **{**waiting, "evaluator_0": None})
    assert pods_made(builders.plan_answered(held, children)) == {}
    for one in children.objects:
        one["spec"]["nodeName"] = "node-1"
    assert list(pods_made(builders.plan_answered(held, children))) == ["digits-evaluator-0-0"]


def test_a_gang_does_not_wait_for_what_has_finished():
    began = gang_job(failurePolicy={"backoff": {"initialSeconds": 0}})
    pods = {
        "worker_0": builders.all_pods(began, builders.failed())["worker-0"],
        "worker_1": builders.all_pods(began, builders.ended())["worker-1"],
    }
    began, children = settled(began, stored_group(began), **pods)
    made = builders.plan_answered(began, children)
    assert pods_made(made)["digits-worker-0-1"]["spec"]["schedulingGroup"] == {"podGroupName": "digits"}
    (repair,) = of(made, Repair)
    assert builders.gang_minimum(repair.manifest) == 3
