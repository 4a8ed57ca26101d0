# SPDX-License-Identifier: Apache-2.0
"""Why a pod does not run, in words."""

# ruff: noqa: E501 (a table reads best with one case a line)

from __future__ import annotations

from typing import Any

import pytest

from dtjob.plan.diagnosis.pending import waiting_reason
from tests.unit.operator import builders


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


def test_the_first_task_that_waits_is_named():
    job = builders.job()
    pods = builders.all_pods(job, builders.unschedulable("no GPU"))
    assert waiting_reason(builders.views(job, *pods.values())) == "chief-0 waits: Unschedulable: no GPU"


def test_a_task_that_waits_is_named_before_one_that_runs_beside_a_broken_container():
    job = builders.job()
    pods = builders.all_pods(job)
    pods["chief-0"]["status"] = beside(builders.running(), "proxy", "CrashLoopBackOff", init=True)
    pods["worker-1"]["status"] = builders.unschedulable("no GPU")
    assert waiting_reason(builders.views(job, *pods.values())) == "worker-1 waits: Unschedulable: no GPU"


def test_all_scheduling_gates_are_named():
    job = builders.job("Default")
    pod = builders.pod(job, "chief-0", {"phase": "Pending"})
    pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/hold"}]
    said = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "there are gates"}
    pod["status"] = {"phase": "Pending", "conditions": [said]}
    assert waiting_reason(builders.views(job, pod)) == (
        "chief-0 waits: SchedulingGated: it is scheduled when its scheduling gates are taken away: "
        "kueue.x-k8s.io/admission, example.com/hold"
    )
