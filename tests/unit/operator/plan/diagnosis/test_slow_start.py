# SPDX-License-Identifier: Apache-2.0
"""A pod that is slow to start is named with its state, its node, since when, and what its kubelet says."""

# ruff: noqa: E501 (a table reads best with one case a line)

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dtjob import times
from dtjob.api.job import Job
from dtjob.objects.manifest import Manifest
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Plan
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children, PodEvent
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

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
    made = plan(job, children, at(seconds))
    return (made.status or job.status)["message"], made


def test_a_pod_that_starts_in_the_usual_time_is_not_named():
    children, _ = seen(CREATING)
    message, made = planned(children, 14)
    assert (message, made.events_of, made.look_again_at) == ("", "", at(15))


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
    assert message == f"worker-0 waits: {state} {PLACE}"
    assert made.events_of == pod["metadata"]["uid"]


def test_the_message_has_the_pods_last_event_which_is_read_again_after_a_minute():
    children, pod = seen(CREATING)
    read = replace(children, pod_event=PodEvent(pod["metadata"]["uid"], at(15), NOT_FOUND))
    message, made = planned(read, 16)
    assert message == f"worker-0 waits: ContainerCreating {PLACE}; {NOT_FOUND}"
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
    assert message == (
        "worker-0 waits: no scheduler has given it a node or said why not "
        f"(pod digits-worker-0-0, since {times.rfc3339(NOW)})"
    )
    assert made.events_of == "", "a pod without a node has no kubelet"


def test_the_message_has_the_containers_own_reason_and_its_node():
    children, _ = seen(builders.waiting("ImagePullBackOff", "no such image"))
    assert planned(children, 6)[0] == f"worker-0 waits: ImagePullBackOff: no such image {PLACE}"


def test_a_scheduler_that_says_why_is_heard():
    children, _ = seen(builders.unschedulable("no GPU"), scheduled=False)
    message, made = planned(children, 600)
    assert (message, made.events_of) == ("worker-0 waits: Unschedulable: no GPU", "")


def test_a_job_whose_pods_run_has_nothing_read():
    children = Children(tuple(builders.all_pods(JOB).values()))
    assert planned(children, 600)[1].events_of == ""
