# SPDX-License-Identifier: Apache-2.0
"""The calls that bring a job's objects to its status."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

from dtjob.api.job import Job
from dtjob.api.status.internal import Incident
from dtjob.objects import labels, shared
from dtjob.objects.manifest import Manifest
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Create, Repair
from dtjob.plan.pods import converge, keep_shared, make_config_map
from dtjob.plan.record.failure import Cause
from dtjob.plan.seen.children import Children
from dtjob.plan.seen.situation import Situation
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at


def calls(job: Job, *pods: Manifest, now: Any = NOW) -> list[str]:
    """What is asked for, in words, of a job that has its shared objects."""
    others = [builders.stored(one) for one in shared_objects(job)]
    read = {(one["kind"], one["metadata"]["name"]): one for one in others}
    return builders.in_words(converge(Situation.of(job, Children((*pods, *others), read=read), now)))


def test_the_evaluator_is_made_when_every_task_that_trains_has_its_pod():
    """A quota of three pods would else give it the place of a worker, and the job would never start."""
    job = builders.job(evaluator=True)
    pods = builders.all_pods(job, evaluator_0=None)
    last = pods.pop("worker-1")
    assert calls(job, *pods.values()) == ["create digits-worker-1-0"]
    last["status"] = builders.unschedulable()
    assert calls(job, *pods.values(), last) == ["create digits-evaluator-0-0"]


def test_an_earlier_attempt_goes_out_of_service_and_away():
    job = builders.job(status=builders.at_attempts({"worker-0": 1}))
    pods = builders.all_pods(job)
    old = builders.pod(job, "worker-0", builders.running())
    away = ["unserve digits-worker-0-0", "delete digits-worker-0-0"]
    assert calls(job, *pods.values(), old) == away
    assert calls(job, *pods.values(), builders.deleting(old)) == away[:1]
    old["status"] = {**builders.ended(1), "phase": "Running"}  # a sidecar of it still runs
    assert calls(job, *pods.values(), old) == away
    old["status"] = builders.ended(1)
    assert calls(job, *pods.values(), old) == away[1:]  # no EndpointSlice lists a pod that has ended


def test_only_the_chief_waits_for_its_predecessors_end():
    job = builders.job(status=builders.at_attempts({"chief-0": 1, "worker-0": 1}))
    old = [builders.deleting(builders.pod(job, task, builders.running())) for task in ("chief-0", "worker-0")]
    others = builders.pod(job, "worker-1", builders.running())
    created = [call for call in calls(job, *old, others) if call.startswith("create")]
    assert created == ["create digits-worker-0-1"]
    old[0]["status"] = builders.ended(143)
    created = [call for call in calls(job, *old, others) if call.startswith("create")]
    assert created == ["create digits-chief-0-1", "create digits-worker-0-1"]


def test_no_pod_is_made_before_the_wait_is_over():
    incident = Incident(started_at=NOW, cause=Cause.ERROR, not_before=at(10))
    job = builders.job(workers=1, status=builders.remembered(incident=incident))
    assert calls(job, now=at(9)) == []
    assert calls(job, now=at(10)) == ["create digits-chief-0-0", "create digits-worker-0-0"]


JOB = builders.job()


def asked(*there: Manifest) -> list[str]:
    seen = replace(builders.situation(JOB), children=Children(there))
    words = {Create: "create", Repair: "repair"}
    return [f"{words[type(action)]} {action.kind}" for action in keep_shared(seen)]


def all_there() -> list[Manifest]:
    return [builders.stored(one) for one in shared.shared_objects(JOB)]


def test_missing_shared_objects_are_created_and_correct_ones_are_left_alone():
    assert asked() == ["create Service", "create NetworkPolicy"]
    assert asked(*all_there()) == []
    assert asked(*all_there()[1:]) == ["create Service"]


def test_a_shared_object_that_pods_had_is_created_again():
    pods = builders.all_pods(JOB).values()
    (made,) = keep_shared(builders.situation(JOB, *pods, *all_there()[:2]))
    assert isinstance(made, Create)
    assert (made.kind, made.again) == ("NetworkPolicy", True)
    first = keep_shared(builders.situation(JOB))
    assert [one.again for one in first if isinstance(one, Create)] == [False] * 2


def made_config_maps(job: Job, there: Manifest | None, *objects: Manifest) -> list[bool]:
    """Whether each ConfigMap that is to be made is made again, where the cluster has this one."""
    read = {("ConfigMap", shared.config_map_name(job)): there}
    return [one.again for one in make_config_map(Situation.of(job, Children(objects, read=read), NOW))]


def test_a_config_map_that_is_gone_is_made_with_the_first_pods():
    known = builders.stored(shared.config_map(JOB), created=at(-60))
    assert made_config_maps(JOB, known, known) == []
    assert made_config_maps(JOB, None, known) == [True]
    assert made_config_maps(JOB, None) == [False]


def test_a_config_map_that_was_made_just_now_is_not_asked_for():
    """300 new jobs on a busy cluster took 10.4 requests each instead of 8."""
    new = builders.stored(shared.config_map(JOB), created=at(-59))
    assert make_config_map(Situation.of(JOB, Children((new,)), NOW)) == []
    resumed = builders.job(status={"conditions": [builders.condition("Suspended", "False")]})
    assert made_config_maps(resumed, None, new) == [True]


def test_no_config_map_is_made_for_a_job_that_needs_no_pod():
    """Nobody may list ConfigMaps, so an operator that has just started knows of none."""
    made = converge(builders.situation(JOB, *builders.all_pods(JOB).values()))
    assert [one.kind for one in made if isinstance(one, Create)] == ["Service", "NetworkPolicy"]


def test_the_config_map_of_a_larger_group_was_never_missing():
    """The pods of the group before it are still there, and an evaluator's stays."""
    smaller = builders.job(workers=1, evaluator=True)
    known, pods = builders.stored(shared.config_map(smaller)), builders.all_pods(smaller)
    assert made_config_maps(builders.job(evaluator=True), None, known, *pods.values()) == [False]


def test_a_drifted_shared_object_is_repaired_and_the_field_is_named():
    service, config_map, policy = all_there()
    policy["spec"]["ingress"] = [{}]
    assert asked(service, config_map, policy) == ["repair NetworkPolicy"]
    (action,) = keep_shared(replace(builders.situation(JOB), children=Children((service, config_map, policy))))
    assert isinstance(action, Repair)
    assert (action.field, action.there) == ("spec.ingress", policy)
    policy["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    assert asked(service, config_map, policy) == []  # it is made anew once it is gone


def test_an_object_that_the_job_does_not_own_is_not_repaired():
    service, config_map, policy = all_there()
    strange = deepcopy(service)
    strange["metadata"]["ownerReferences"] = []
    strange["spec"]["selector"] = {}
    assert asked(strange, config_map, policy) == ["create Service"]  # which will say whose it is


def test_a_claim_is_created_once_and_a_retained_one_is_used() -> None:
    job = builders.claim_job()
    service, config_map, claim, policy = map(builders.stored, shared.shared_objects(job))

    def made(*there: Manifest) -> list[str]:
        seen = replace(builders.situation(job), children=Children(there))
        return [action.kind for action in keep_shared(seen)]

    assert made(service, config_map, policy) == ["PersistentVolumeClaim"]
    earlier = deepcopy(claim)
    earlier["metadata"]["labels"][labels.JOB_UID] = "of-an-earlier-job"
    earlier["spec"]["resources"]["requests"]["storage"] = "20Gi"
    assert made(service, config_map, earlier, policy) == []
    strange = builders.stranger("PersistentVolumeClaim", "digits-checkpoints")
    assert made(service, config_map, strange, policy) == ["PersistentVolumeClaim"]
