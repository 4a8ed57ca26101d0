# SPDX-License-Identifier: Apache-2.0
"""Pending: the message that says why a pod does not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.objects.manifest import Manifest
from dtjob.plan.diagnosis.slow_start import where
from dtjob.plan.seen.children import PodState, TaskView, container_status, node_of
from dtjob.plan.seen.pod_facts import facts_of

HARMLESS_WAITS = ("", "ContainerCreating", "PodInitializing")


def waiting_reason(views: Sequence[TaskView], *, with_place: bool = False) -> str:
    """What the first task that cannot start waits for, such as an image. If there is none, which container beside a
    running task does not run. Empty if every pod runs. `with_place`: also the pod, its node and since when."""
    beside = ""
    for view in views:
        if view.state not in (PodState.PENDING, PodState.RUNNING) or view.pod is None or not facts_of(view.pod).waits:
            continue
        reason = _harmful_wait(view.pod)
        if view.state is PodState.RUNNING:
            beside = beside or (reason and f"{view.task.id} runs, but {reason}")
        elif reason := reason or unscheduled(view.pod):
            return f"{view.task.id} waits: {reason}{_where(view.pod) if with_place else ''}"
    return beside


def _where(pod: Manifest) -> str:
    """The pod, its node and since when it has it; nothing if it has none, as its scheduler says why."""
    return f" ({where(pod)})" if node_of(pod) and not unscheduled(pod) else ""


def _harmful_wait(pod: Manifest) -> str:
    """What the first container that does not start says; init containers come first, as all others wait for them."""
    status = pod.get("status") or {}
    others = [one for one in status.get("containerStatuses") or () if one["name"] != TRAINING_CONTAINER]
    for one in (*(status.get("initContainerStatuses") or ()), container_status(pod), *others):
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting.get("reason", "") not in HARMLESS_WAITS:
            said = _joined(waiting)
            return said if one["name"] == TRAINING_CONTAINER else f"container {one['name']}: {said}"
    return ""


def unscheduled(pod: Manifest) -> str:
    """Why the pod has no node, as its scheduler says; empty if it has one, or nobody has looked at it."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return _gated(pod) or _joined(condition)
    return ""


def _gated(pod: Manifest) -> str:
    """Which scheduling gates hold the pod back, whoever set them: Kubernetes says only that there are some."""
    gates = [one["name"] for one in (pod.get("spec") or {}).get("schedulingGates") or ()]
    if not gates:
        return ""
    named, them = ", ".join(gates), "gate is" if len(gates) == 1 else "gates are"
    return f"SchedulingGated: it is scheduled when its scheduling {them} taken away: {named}"


def _joined(said: Mapping[str, Any]) -> str:
    return ": ".join(text for text in (said.get("reason", ""), said.get("message", "")) if text)
