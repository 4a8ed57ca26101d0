# SPDX-License-Identifier: Apache-2.0
"""The PodGroup of each provider, and its members."""

from dataclasses import replace
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.api.spec.scheduling import GangProvider
from dtjob.controller.stored_fields import kept
from dtjob.objects import drift, gangs, labels
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.pod import pod
from tests.unit.operator.builders import JOB_UID, gang_minimum, job, task


def gang_job(provider: str | None = None, **more: Any) -> Job:
    """A chief, three workers and an evaluator in a gang."""
    fields = {name: more.pop(name) for name in ("volcano", "coscheduling") if name in more}
    named = {"provider": provider} if provider else {}
    scheduling = {"gang": {**named, **fields}, **more.pop("scheduling", {})}
    return job(workers=3, evaluator=True, scheduling=scheduling, **more)


def group_of(job: Job, **more: Any) -> Manifest:
    made = gangs.pod_group(job, **more)
    assert made is not None
    return made


def member(job: Job, id_: str = "worker-1", **more: Any) -> Manifest:
    return gangs.joined(pod(job, task(id_), 0), job, NO_DEFAULTS, **more)


def test_a_pod_group_of_kubernetes_has_its_form_and_its_members():
    made = gangs.on_the_wire(group_of(gang_job("Kubernetes")))
    assert (made["apiVersion"], made["kind"]) == ("scheduling.k8s.io/v1beta1", "PodGroup")
    assert made["spec"] == {"schedulingPolicy": {"gang": {"minCount": 4}}}
    assert (made["metadata"]["name"], labels.controller_uid(made)) == ("digits", JOB_UID)
    spec = member(gang_job("Kubernetes"))["spec"]
    assert spec["schedulingGroup"] == {"podGroupName": "digits"}
    assert "schedulerName" not in spec


def test_a_pod_group_of_kubernetes_has_the_priority_of_its_job():
    """The scheduler goes by that of the PodGroup, and not by the pods'."""
    made = group_of(gang_job("Kubernetes", scheduling={"priorityClassName": "high"}))
    assert made["spec"]["priorityClassName"] == "high"


def test_a_priority_that_cannot_change_is_left_as_it_is():
    """One that an operator before this made has none."""
    made = group_of(gang_job("Kubernetes", scheduling={"priorityClassName": "high"}))
    there = {**made, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}, "disruptionMode": {"single": {}}}}
    assert drift.drifted(made, there) == "spec.schedulingPolicy"
    repaired = drift.repaired(made, there)
    assert repaired["spec"] == {"schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": {"single": {}}}
    assert drift.drifted(made, repaired) == ""


def workers_with(chief: dict[str, Any], **worker: Any) -> dict[str, Any]:
    return {"chief": chief, "worker": {"replicas": 3, **worker}}


def test_a_pod_group_of_volcano_has_its_form_and_its_members():
    in_queue = {"volcano": {"queue": "team-a"}}
    resources = {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}
    asks = gang_job(
        "Volcano",
        replicaSpecs=workers_with({}, resources=resources),
        scheduling={"priorityClassName": "high"},
        **in_queue,
    )
    made = gangs.on_the_wire(group_of(asks))
    assert (made["apiVersion"], made["kind"]) == ("scheduling.volcano.sh/v1beta1", "PodGroup")
    assert made["spec"] == {
        "minMember": 4,
        "queue": "team-a",
        "priorityClassName": "high",
        "minResources": {"cpu": "1500m", "memory": str(3 * 1024**3)},
    }
    joined = member(gang_job("Volcano", **in_queue))
    assert joined["spec"]["schedulerName"] == "volcano"
    assert joined["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "digits",
        "scheduling.volcano.sh/queue-name": "team-a",
    }
    assert group_of(gang_job("Volcano"))["spec"] == {"minMember": 4, "queue": "default"}


def test_least_resources_are_those_of_the_fewest_pods():
    asks = [{"requests": {"cpu": cpus}} for cpus in (4, 1)]
    replicas = workers_with({"resources": asks[0]}, resources=asks[1])
    made = group_of(gang_job("Volcano", replicaSpecs=replicas, elasticPolicy={"minReplicas": 1}))
    assert made["spec"] == {"minMember": 2, "queue": "default", "minResources": {"cpu": "5"}}


def test_a_resource_that_is_no_quantity_is_left_out_of_the_pod_group():
    sidecar = {"name": "log", "resources": {"limits": {"memory": "16GB"}}}
    replicas = {"chief": {"template": {"spec": {"containers": [sidecar]}}}, "worker": {"replicas": 1}}
    made = group_of(job(replicaSpecs=replicas, scheduling={"gang": {"provider": "Volcano"}}))
    assert made["spec"] == {"minMember": 2, "queue": "default"}


def test_a_pod_group_of_coscheduling_has_its_form_and_its_members():
    job = gang_job("Coscheduling", coscheduling={"scheduleTimeoutSeconds": 60}, elasticPolicy={"minReplicas": 2})
    made = gangs.on_the_wire(group_of(job))
    assert (made["apiVersion"], made["kind"]) == ("scheduling.x-k8s.io/v1alpha1", "PodGroup")
    assert made["spec"] == {"minMember": 3, "scheduleTimeoutSeconds": 60}
    joined = member(job)
    assert joined["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
    assert labels.of(joined)["scheduling.x-k8s.io/pod-group"] == "digits"
    assert labels.of(joined)[labels.JOB_UID] == JOB_UID


@pytest.mark.parametrize("provider", list(GangProvider))
def test_a_pod_outside_the_gang_has_its_scheduler_and_not_its_group(provider: GangProvider):
    queue = {"volcano": {"queue": "a"}} if provider is GangProvider.VOLCANO else {}
    alone, joined = member(gang_job(provider, **queue), alone=True), member(gang_job(provider, **queue))
    assert alone["spec"].get("schedulerName") == joined["spec"].get("schedulerName")
    assert "digits" not in (alone["metadata"].get("annotations") or {}).values()
    assert "schedulingGroup" not in alone["spec"]
    assert gangs.COSCHEDULING_GROUP not in labels.of(alone)
    if queue:
        assert alone["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "a"}


def test_a_template_may_name_the_scheduler_and_has_annotations():
    template = {"metadata": {"annotations": {"a": "b"}}, "spec": {"schedulerName": "mine"}}
    joined = member(gang_job("Volcano", replicaSpecs=workers_with({}, template=template)))
    assert joined["spec"]["schedulerName"] == "mine"
    assert joined["metadata"]["annotations"] == {"a": "b", "scheduling.k8s.io/group-name": "digits"}


def test_the_evaluator_is_no_member():
    assert [one.id for one in gangs.members(gang_job())] == ["chief-0", "worker-0", "worker-1", "worker-2"]


def test_a_job_without_a_gang_has_no_group():
    assert gangs.pod_group(job()) is None
    assert member(job()) == pod(job(), task("worker-1"), 0)
    assert gangs.provider_of(job(status={"gang": {"provider": "Volcano"}}), NO_DEFAULTS) is None


def test_the_provider_is_the_jobs_own_before_the_operators_default():
    volcano = replace(NO_DEFAULTS, gang_provider=GangProvider.VOLCANO)
    assert gangs.provider_of(gang_job(), NO_DEFAULTS) == "Kubernetes"
    assert gangs.provider_of(gang_job(), volcano) == "Volcano"
    assert gangs.provider_of(gang_job("Coscheduling"), volcano) == "Coscheduling"
    began = gang_job(status={"gang": {"provider": "Kubernetes"}})
    assert gangs.provider_of(began, volcano) == "Kubernetes"
    of_a_later_release = gang_job(status={"gang": {"provider": "Other"}})
    assert gangs.provider_of(of_a_later_release, volcano) == "Volcano"


def test_elastic_workers_count_with_their_least():
    assert gangs.min_available(gang_job(elasticPolicy={"minReplicas": 1})) == 2
    assert gangs.min_available(gang_job(elasticPolicy={})) == 4
    assert gangs.min_available(gang_job(elasticPolicy={"minReplicas": 9})) == 4  # raised while the job runs


def test_a_group_asks_for_no_more_than_are_left():
    assert [gang_minimum(group_of(gang_job(), at_most=left)) for left in (9, 4, 2, 0)] == [4, 4, 2, 1]
    assert gang_minimum(group_of(gang_job("Coscheduling", elasticPolicy={"minReplicas": 1}), at_most=3)) == 2


def stored(job: Job, **spec: Any) -> Manifest:
    made = group_of(job)
    return {**made, "spec": {**made["spec"], **spec}, "status": {"phase": "Inqueue"}}


def test_a_repair_of_a_pod_group_keeps_the_fields_of_others():
    wanted = group_of(gang_job("Volcano"))
    there = stored(gang_job("Volcano"), minMember=1, networkTopology={"mode": "soft"})
    assert drift.drifted(wanted, there) == "spec.minMember"
    right = drift.repaired(wanted, there)
    assert right == {**there, "spec": {**there["spec"], "minMember": 4}}
    assert drift.drifted(wanted, right) == ""


def test_the_kept_fields_of_a_pod_group_suffice():
    job = gang_job("Volcano")
    whole = stored(job)
    whole["metadata"] = {**whole["metadata"], "managedFields": [{"a": "b"}], "uid": "u", "resourceVersion": "3"}
    small = kept(whole)
    assert "managedFields" not in small["metadata"]
    assert "status" not in small
    assert (gang_minimum(small), labels.controller_uid(small)) == (4, JOB_UID)
    assert kept(small) == small


def test_a_dropped_group_is_seen():
    joined = member(gang_job("Kubernetes"))
    assert not gangs.lost_group(joined, joined)
    assert gangs.lost_group(joined, pod(gang_job(), task("worker-1"), 0))
    assert not gangs.lost_group(pod(job(), task("worker-1"), 0), pod(job(), task("worker-1"), 0))
