# SPDX-License-Identifier: Apache-2.0
"""Why a pod does not run, in words."""

# ruff: noqa: E501 (a table reads best with one case a line)

from dataclasses import replace
from typing import Any

import pytest

from dtjob import times
from dtjob.api.job import Job
from dtjob.objects.manifest import Manifest
from dtjob.objects.placeholder import placeholder
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Plan
from dtjob.plan.diagnosis.pending import waiting_reason, waiting_word
from dtjob.plan.seen.children import Children, PodEvent
from tests.unit.operator import builders
from tests.unit.operator.builders import at


def beside(status: dict[str, Any], name: str, reason: str, *, init: bool = False) -> dict[str, Any]:
    """The status with another container that waits, which the kubelet lists before the training one."""
    waits = {"name": name, "state": {"waiting": {"reason": reason, "message": "no luck"}}}
    kind = "initContainerStatuses" if init else "containerStatuses"
    return {**status, kind: [waits, *status.get(kind, ())]}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (builders.waiting("ImagePullBackOff", 'Back-off pulling image "x"'), 'worker-0 waits: ImagePullBackOff: Back-off pulling image "x"'),
        (builders.waiting("CreateContainerConfigError"), "worker-0 waits: CreateContainerConfigError"),
        (builders.unschedulable("0/3 nodes are available"), "worker-0 waits: Unschedulable: 0/3 nodes are available"),
        (builders.waiting("ContainerCreating"), ""),
        (builders.running(), ""),
        (builders.ended(1), ""),
        ({}, ""),
        (beside(builders.waiting("PodInitializing"), "fetch", "ImagePullBackOff", init=True), "worker-0 waits: container fetch: ImagePullBackOff: no luck"),
        (beside(builders.waiting("PodInitializing"), "proxy", "CrashLoopBackOff", init=True), "worker-0 waits: container proxy: CrashLoopBackOff: no luck"),
        (beside(builders.waiting("PodInitializing"), "fetch", "PodInitializing", init=True), ""),
        (beside(builders.waiting("ErrImagePull"), "ship", "ImagePullBackOff"), "worker-0 waits: ErrImagePull"),
        ({**beside(builders.running(), "ship", "ImagePullBackOff"), "phase": "Pending"}, "worker-0 waits: container ship: ImagePullBackOff: no luck"),
        (beside(builders.running(), "proxy", "CrashLoopBackOff", init=True), "worker-0 runs, but container proxy: CrashLoopBackOff: no luck"),
        (beside(builders.ended(0), "proxy", "CrashLoopBackOff", init=True), ""),
    ],
)  # fmt: skip
def test_each_status_of_a_waiting_pod_has_its_reason_in_words(status: dict[str, Any], words: str):
    job = builders.job()
    assert waiting_reason(builders.views(job, builders.pod(job, "worker-0", status))) == words


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (builders.waiting("ImagePullBackOff", "no such image"), "ImagePullBackOff"),
        (beside(builders.waiting("PodInitializing"), "fetch", "CrashLoopBackOff", init=True), "CrashLoopBackOff"),
        (builders.unschedulable(), "Unschedulable"),
        (builders.waiting("ContainerCreating"), "Starting"),
        ({"phase": "Pending"}, "Starting"),
        (builders.running(), ""),
        (builders.ended(1), ""),
    ],
)
def test_a_pod_that_waits_has_its_reason_in_one_word(status: dict[str, Any], word: str):
    job = builders.job()
    assert waiting_word(builders.pod(job, "worker-0", status), job.metadata.uid) == word


def test_only_a_pod_of_a_task_of_the_job_that_stays_waits_for_something():
    job, unscheduled = builders.job(), builders.unschedulable()
    pod = builders.pod(job, "worker-0", unscheduled)
    assert waiting_word(pod, "of another job") == ""
    assert waiting_word(builders.deleting(pod), job.metadata.uid) == ""
    held = {**placeholder(job, 0), "status": unscheduled}
    assert waiting_word(held, job.metadata.uid) == ""
    assert waiting_word(builders.stored(shared_objects(job)[0]), job.metadata.uid) == ""
    pod["spec"]["schedulingGates"] = [{"name": "a"}]
    assert waiting_word(pod, job.metadata.uid) == "SchedulingGated"
    del pod["spec"]["schedulingGates"], pod["status"]["conditions"], pod["spec"]["nodeName"]
    assert waiting_word(pod, job.metadata.uid) == "NotScheduledYet"


@pytest.mark.parametrize(
    ("chief", "named"),
    [
        (builders.unschedulable("no GPU"), "chief-0"),
        (beside(builders.running(), "proxy", "CrashLoopBackOff", init=True), "worker-1"),
    ],
    ids=["the first one", "before one that runs beside a broken container"],
)
def test_a_task_that_waits_is_named(chief: dict[str, Any], named: str):
    job = builders.job()
    pods = builders.all_pods(job, chief_0=chief, worker_1=builders.unschedulable("no GPU"))
    assert waiting_reason(builders.views(job, *pods.values())) == f"{named} waits: Unschedulable: no GPU"


def test_all_scheduling_gates_are_named():
    job = builders.job("Default")
    pod = builders.pod(job, "chief-0")
    pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/hold"}]
    said = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "there are gates"}
    pod["status"] = {"phase": "Pending", "conditions": [said]}
    words = waiting_reason(builders.views(job, pod))
    assert words.startswith("chief-0 waits: SchedulingGated: ")
    assert words.endswith(": kueue.x-k8s.io/admission, example.com/hold")


JOB = builders.job()
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": times.rfc3339(at(5))}
PLACE = "(pod digits-worker-0-0, on node node-1 since 2026-11-21T10:00:05Z)"
NOT_FOUND = 'FailedMount: MountVolume.SetUp failed for volume "settings" : configmap "settings" not found'
CREATING = builders.waiting("ContainerCreating")


def init(*states: dict[str, Any]) -> dict[str, Any]:
    """The status of a pod with such init containers."""
    found = [{"name": f"init-{number}", "state": state} for number, state in enumerate(states)]
    return {**builders.waiting("PodInitializing"), "initContainerStatuses": found}


def seen(status: dict[str, Any], *, scheduled: bool = True) -> tuple[Children, Manifest]:
    """The job whose worker-0 is in this state, and that pod."""
    pods = builders.all_pods(JOB)
    pod = pods["worker-0"]
    pod["status"] = {**status, "conditions": [SCHEDULED]} if scheduled else status
    if not scheduled:
        del pod["spec"]["nodeName"]
    return Children((*pods.values(), *map(builders.stored, shared_objects(JOB)))), pod


def planned(children: Children, seconds: float, job: Job = JOB) -> tuple[str, Plan]:
    made = builders.plan_answered(job, children, at(seconds))
    return (made.status or job.status)["message"], made


@pytest.mark.parametrize(
    ("status", "seconds", "words"),
    [(CREATING, 14, ""), (builders.running(), 600, ""), (builders.unschedulable("no GPU"), 600, "no GPU")],
    ids=["it starts in the usual time", "it runs", "the scheduler says why it waits"],
)
def test_no_events_are_read_of_a_pod_that_runs_or_starts_or_waits_for_a_node(
    status: dict[str, Any], seconds: float, words: str
):
    children, _ = seen(status, scheduled=not words)
    message, made = planned(children, seconds)
    assert (message, made.events_of) == (f"worker-0 waits: Unschedulable: {words}" if words else "", "")
    assert made.look_again_at == (at(15) if seconds == 14 else None)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (CREATING, "ContainerCreating"),
        (init({"terminated": {"exitCode": 0}}, {"running": {}}, {"waiting": {"reason": "PodInitializing"}}), "Init:1/3, init container init-1 runs"),
        (init({"waiting": {"reason": "PodInitializing"}}), "container init-0: PodInitializing"),
        ({"phase": "Pending"}, "its kubelet has not reported its containers"),
    ],
)  # fmt: skip
def test_a_pod_that_starts_slowly_is_named_with_its_state_node_and_time(status: dict[str, Any], state: str):
    children, pod = seen(status)
    message, made = planned(children, 15)
    assert f" {state} {PLACE}" in message
    assert made.events_of == pod["metadata"]["uid"]


def test_the_message_has_the_pods_last_event_which_is_read_again_after_a_minute():
    children, pod = seen(CREATING)
    read = replace(children, pod_event=PodEvent(pod["metadata"]["uid"], at(15), NOT_FOUND))
    message, made = planned(read, 16)
    assert message.endswith(NOT_FOUND)
    assert (made.events_of, made.look_again_at) == ("", at(75))
    assert planned(read, 75)[1].events_of == pod["metadata"]["uid"]


def test_the_events_of_another_pod_are_not_its_own():
    children, pod = seen(CREATING)
    message, made = planned(replace(children, pod_event=PodEvent("another", at(15), NOT_FOUND)), 16)
    assert message.endswith(PLACE)
    assert made.events_of == pod["metadata"]["uid"]


def test_a_pod_of_which_no_scheduler_has_said_anything_is_named_too():
    children, _ = seen({"phase": "Pending"}, scheduled=False)
    message, made = planned(children, 10)
    assert message.startswith("worker-0 waits: no scheduler")
    assert made.events_of == "", "a pod without a node has no kubelet"


def with_claim(phase: str, storage_class: str | None, **event: Any) -> Children:
    """The job whose chief has no node, and whose claim is in this phase."""
    job = builders.claim_job()
    pods = builders.all_pods(job, chief_0=builders.unschedulable("pod has unbound immediate PersistentVolumeClaims"))
    del pods["chief-0"]["spec"]["nodeName"]
    objects = [builders.stored(one) for one in shared_objects(job)]
    (claim,) = [one for one in objects if one["kind"] == "PersistentVolumeClaim"]
    claim["status"] = {"phase": phase}
    claim["metadata"]["uid"] = "of-the-claim"
    claim["spec"] |= {} if storage_class is None else {"storageClassName": storage_class}
    return Children((*pods.values(), *objects), **event)


UNBOUND = "chief-0 waits: Unschedulable: pod has unbound immediate PersistentVolumeClaims"
NO_CLASS = 'ProvisioningFailed: storageclass.storage.k8s.io "fast" not found'


def test_a_claim_without_a_volume_is_named_with_its_event() -> None:
    job = builders.claim_job()
    message, made = planned(with_claim("Pending", "fast"), 15, job)
    assert (message, made.events_of) == (UNBOUND, "of-the-claim")
    read = with_claim("Pending", "fast", pod_event=PodEvent("of-the-claim", at(15), NO_CLASS))
    message, made = planned(read, 16, job)
    assert message == f"{UNBOUND}; claim digits-checkpoints has no volume: {NO_CLASS}"
    assert (made.events_of, made.look_again_at) == ("", at(75))
    assert planned(with_claim("Bound", "fast"), 15, job)[1].events_of == ""


def test_a_claim_without_a_storage_class_says_what_to_write() -> None:
    message, _ = planned(with_claim("Pending", None), 5, builders.claim_job())
    assert "it names no StorageClass, and the cluster has no default one" in message
    assert "set volumeClaimTemplate.spec.storageClassName" in message
    assert planned(with_claim("Pending", ""), 5, builders.claim_job())[0] == UNBOUND, "a volume may be made by hand"
