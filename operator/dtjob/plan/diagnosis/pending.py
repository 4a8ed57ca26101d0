# SPDX-License-Identifier: Apache-2.0
"""Pending: the message that says why a pod does not run, or takes longer than usual to start.

A pod that is slow to start waits for a volume, a ConfigMap, an image or an init container. Its status does not say for
which, and the events of its kubelet do. They are read for one pod of a job, now and then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from dtjob import times
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import PodState, TaskView, container_status, created_at, deleting, node_of
from dtjob.plan.seen.pod_facts import facts_of
from dtjob.plan.seen.situation import Situation

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


SLOW_AFTER = timedelta(seconds=10)
"""Most pods whose image is on their node start in less."""
READ_AGAIN_AFTER = timedelta(minutes=1)
"""A volume that cannot be attached is told of after two minutes."""
MOST_LOOKED_AT = 20
"""Pods that have not started, of a job of thousands."""


def slow_start(situation: Situation) -> str:
    """Why the first pod that is slow to start has not started; empty if none is slow."""
    view = _slow(situation)
    if view is None or view.pod is None:
        return ""
    event = situation.children.pod_event
    said = f"; {event.text}" if event and event.text and event.pod_uid == view.pod["metadata"]["uid"] else ""
    return f"{view.task.id} waits: {_state(view.pod)} ({where(view.pod)}){said}"


def events_to_read(situation: Situation) -> str:
    """The uid of the pod whose events are to be read now; empty if there is none."""
    view, event = _slow(situation), situation.children.pod_event
    if view is None or view.pod is None or not node_of(view.pod):
        return ""
    uid = str(view.pod["metadata"]["uid"])
    known = event is not None and event.pod_uid == uid and situation.now < event.read_at + READ_AGAIN_AFTER
    return "" if known else uid


def slow_start_changes_at(situation: Situation) -> datetime | None:
    """When time alone makes a pod slow, or lets its events be read again."""
    if _slow(situation) is not None and (event := situation.children.pod_event) is not None:
        return event.read_at + READ_AGAIN_AFTER
    return min((_since(view.pod) + SLOW_AFTER for view in _starting(situation) if view.pod), default=None)


def where(pod: Manifest) -> str:
    """The pod, its node where it has one, and since when it is there."""
    node, since = node_of(pod), times.rfc3339(_since(pod))
    return f"pod {pod['metadata']['name']}, {f'on node {node} ' if node else ''}since {since}"


def _slow(situation: Situation) -> TaskView | None:
    late = (view for view in _starting(situation) if view.pod and situation.now >= _since(view.pod) + SLOW_AFTER)
    return next(late, None)


def _starting(situation: Situation) -> Iterator[TaskView]:
    """The first tasks whose pods have not started, without those that a scheduler has no node for, which says why."""
    pending = (
        view
        for view in situation.views
        if view.state is PodState.PENDING and view.pod is not None and not deleting(view.pod)
    )
    return (view for view in islice(pending, MOST_LOOKED_AT) if view.pod and not _is_refused_a_node(view.pod))


def _scheduled(pod: Manifest) -> dict[str, Any]:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == "PodScheduled"), {})


def _is_refused_a_node(pod: Manifest) -> bool:
    return _scheduled(pod).get("status") == "False"


def _since(pod: Manifest) -> datetime:
    """Since when it has its node; without one, since it was created."""
    text = _scheduled(pod).get("lastTransitionTime")
    return times.parse(text) if text and node_of(pod) else created_at(pod)


def _state(pod: Manifest) -> str:
    """What its containers do, in kubectl's words where it has some."""
    status = pod.get("status") or {}
    if not node_of(pod):
        return "no scheduler has given it a node or said why not"
    init = status.get("initContainerStatuses") or ()
    running = [one["name"] for one in init if "running" in (one.get("state") or {})]
    if running:
        done = sum((one.get("state") or {}).get("terminated", {}).get("exitCode") == 0 for one in init)
        return f"Init:{done}/{len(init)}, init container {running[-1]} runs"
    containers = (*init, *(status.get("containerStatuses") or ()))
    waits = [(one["name"], one["state"]["waiting"]) for one in containers if (one.get("state") or {}).get("waiting")]
    if not waits:
        return "its kubelet has not reported its containers"
    name, waiting = waits[0]
    reason = str(waiting.get("reason") or "Waiting")
    return reason if name == TRAINING_CONTAINER else f"container {name}: {reason}"
