# SPDX-License-Identifier: Apache-2.0
"""Pending: the message that says why a pod does not run, or takes longer than usual to start.

A pod that is slow to start waits for a volume, a ConfigMap, an image or an init container. Its status does not say for
which, and the events of its kubelet do. They are read for one pod of a job, now and then. A pod may have no node
because the job's claim has no volume: then the events of the claim are read.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from dtjob import times
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.objects import shared
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import PodState, TaskView, condition_of, created_at, deleting, facts_of, node_of
from dtjob.plan.seen.situation import Draft, Situation

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
            # If it has no node, its scheduler says why.
            placed = with_place and node_of(view.pod) and not unscheduled(view.pod)
            return f"{view.task.id} waits: {reason}{f' ({_where(view.pod)})' if placed else ''}"
    return beside


def waiting_word(one: Manifest, uid: str) -> str:
    """What the pod of a task of the job `uid` waits for before it runs, in one word of a scheduler or a kubelet. Empty
    for a pod that runs, has ended or is being deleted, and for everything else."""
    if one["kind"] != "Pod" or deleting(one):
        return ""
    facts = facts_of(one)
    ours = facts.controller == uid and facts.task_id is not None  # a placeholder is no task
    if not ours or facts.runs or facts.end is not None or facts.is_terminal:
        return ""
    if facts.waits and (harmful := _harmful(one)):
        return str(harmful["reason"])
    if unscheduled(one):
        gated = (one.get("spec") or {}).get("schedulingGates")
        return "SchedulingGated" if gated else str(condition_of(one, "PodScheduled").get("reason") or "Unschedulable")
    return "Starting" if node_of(one) else "NotScheduledYet"


def _harmful_wait(pod: Manifest) -> str:
    """What the first container that does not start says."""
    waiting = _harmful(pod)
    if not waiting:
        return ""
    said = _sentence(waiting)
    return said if waiting["container"] == TRAINING_CONTAINER else f"container {waiting['container']}: {said}"


def _harmful(pod: Manifest) -> Mapping[str, str]:
    """Reason, message and name of the first container that does not start; empty if there is none. Init containers
    come first, as all others wait for them."""
    status = pod.get("status") or {}
    others = [one for one in status.get("containerStatuses") or () if one["name"] != TRAINING_CONTAINER]
    for one in (*(status.get("initContainerStatuses") or ()), facts_of(pod).container, *others):
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting.get("reason", "") not in HARMLESS_WAITS:
            return {**waiting, "container": one["name"]}
    return {}


def unscheduled(pod: Manifest) -> str:
    """Why the pod has no node, as its scheduler says; empty if it has one, or nobody has looked at it."""
    said = condition_of(pod, "PodScheduled")
    return (_gated(pod) or _sentence(said)) if said.get("status") == "False" else ""


def _gated(pod: Manifest) -> str:
    """Which scheduling gates hold the pod back, whoever set them: Kubernetes says only that there are some."""
    gates = [one["name"] for one in (pod.get("spec") or {}).get("schedulingGates") or ()]
    if not gates:
        return ""
    named, them = ", ".join(gates), "gate is" if len(gates) == 1 else "gates are"
    return f"SchedulingGated: it is scheduled when its scheduling {them} taken away: {named}"


def _sentence(said: Mapping[str, Any]) -> str:
    return ": ".join(text for text in (said.get("reason", ""), said.get("message", "")) if text)


SLOW_AFTER = timedelta(seconds=10)
"""Most pods whose image is on their node start in less."""
READ_AGAIN_AFTER = timedelta(minutes=1)
"""A volume that cannot be attached is told of after two minutes."""
MOST_LOOKED_AT = 20
"""Pods that have not started, of a job of thousands."""


def unbound_claim(situation: Situation) -> str:
    """Why the claim that the operator made for the job has no volume, while a pod waits for it; empty if that is not
    known."""
    if (claim := _unbound_claim(situation)) is None:
        return ""
    name, event = claim["metadata"]["name"], situation.children.pod_event
    if event and event.text and event.pod_uid == claim["metadata"]["uid"]:
        return f"claim {name} has no volume: {event.text}"
    if (claim.get("spec") or {}).get("storageClassName") is not None:  # empty: of a volume that somebody makes
        return ""
    return (
        f"claim {name} has no volume: it names no StorageClass, and the cluster has no default one; delete the claim "
        "and the job, and set volumeClaimTemplate.spec.storageClassName"
    )


def _unbound_claim(situation: Situation) -> Manifest | None:
    """The job's claim, if it has no volume and a pod that mounts it has no node."""
    job = situation.group_job
    if (wanted := shared.claim(job)) is None:
        return None
    mounting = [view.pod for view in (situation.chief, situation.evaluator) if view and view.state is PodState.PENDING]
    if not any(pod is not None and not node_of(pod) for pod in mounting):
        return None
    name, uid = wanted["metadata"]["name"], job.metadata.uid
    ours = (
        one
        for one in situation.children.objects
        if (one["kind"], one["metadata"]["name"]) == (shared.CLAIM, name) and shared.is_of(one, job.metadata.name, uid)
    )
    return next((one for one in ours if (one.get("status") or {}).get("phase") == "Pending"), None)


def slow_start(situation: Situation) -> str:
    """Why the first pod that is slow to start has not started; empty if none is slow."""
    if (found := _slow(situation)) is None:
        return ""
    (view, pod), event = found, situation.children.pod_event
    said = f"; {event.text}" if event and event.text and event.pod_uid == pod["metadata"]["uid"] else ""
    return f"{view.task.id} waits: {_state(pod)} ({_where(pod)}){said}"


def look_at_slow_starts(draft: Draft) -> None:
    """Have the events of the first pod that is slow to start, or of a claim without a volume, be read now and then.
    Look again when a pod becomes slow."""
    situation, event = draft.situation, draft.situation.children.pod_event
    found, claim = _slow(situation), _unbound_claim(situation)
    if event is None or (found is None and claim is None):
        draft.look_again(*(_since(pod) + SLOW_AFTER for _, pod in _starting(situation)))
        draft.look_again(created_at(claim) + SLOW_AFTER if claim else None)
    else:
        draft.look_again(event.read_at + READ_AGAIN_AFTER)
    about = found[1] if found is not None and node_of(found[1]) else claim
    if about is not None and situation.now >= created_at(about) + SLOW_AFTER:
        uid = str(about["metadata"]["uid"])
        known = event is not None and event.pod_uid == uid and situation.now < event.read_at + READ_AGAIN_AFTER
        draft.events_of = "" if known else uid


def _where(pod: Manifest) -> str:
    """The pod, its node where it has one, and since when it is there."""
    node, since = node_of(pod), times.rfc3339(_since(pod))
    return f"pod {pod['metadata']['name']}, {f'on node {node} ' if node else ''}since {since}"


def _slow(situation: Situation) -> tuple[TaskView, Manifest] | None:
    late = (found for found in _starting(situation) if situation.now >= _since(found[1]) + SLOW_AFTER)
    return next(late, None)


def _starting(situation: Situation) -> Iterator[tuple[TaskView, Manifest]]:
    """The first tasks whose pods have not started, without those that a scheduler has no node for, which says why."""
    pending = ((view, view.pod) for view in situation.views if view.state is PodState.PENDING and view.pod)
    starting = ((view, pod) for view, pod in pending if not deleting(pod))
    return (found for found in islice(starting, MOST_LOOKED_AT) if not unscheduled(found[1]))


def _since(pod: Manifest) -> datetime:
    """Since when it has its node; without one, since it was created."""
    text = condition_of(pod, "PodScheduled").get("lastTransitionTime")
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
