# SPDX-License-Identifier: Apache-2.0
"""The cause of a failure: read from a pod what ended it, such as exit code 137, and whether the job itself did it.

It also reads the evidence: what a pod shows of its failure, as the criteria of failure rules take it.
`plan/record/failure.py` has the enum `Cause`, and which causes use up the budget of restarts.
"""

import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dtjob import times
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.objects.exit_codes import RESTARTED_IN_VAIN, STALLED, signal_of
from dtjob.objects.manifest import Manifest
from dtjob.objects.topology import Task
from dtjob.plan.record.failure import UNKNOWN, Cause, Failure, ProgramEnd
from dtjob.plan.seen.children import PodState, TaskView, condition_of, deleting, ended_at, facts_of, node_of

OOM_KILLED = "OOMKilled"
"""The reason of a container's end that the kernel's memory limit ended."""

NEVER_RAN_REASONS = (
    "UnexpectedAdmissionError",
    "NodeAffinity",
    "NodePorts",
    "TopologyAffinityError",
    "PodOSNotSupported",
)
"""Reasons with which a kubelet rejects a pod that it never started, beside `OutOf<resource>`."""

DISRUPTION_REASONS = ("Evicted", "Preempting", "Preempted", "NodeShutdown", "Terminated", "Shutdown", "NodeLost")
"""Reasons of the pod's own status when its node took it down."""

OVER_OWN_LIMIT = re.compile(r"exceed(s|ed)\b.*\blimit\b")
"""How a kubelet says that a pod used more local storage than its own limits allow. It sets no DisruptionTarget then,
and neither does it where a node under pressure does not take the pod ("The node had condition: [DiskPressure].")."""


def failure_of(view: TaskView, now: datetime) -> Failure | None:
    """The failure of the task's current attempt, None if it has not failed. A deletionTimestamp alone is no
    failure."""
    pod = view.pod
    if pod is None or view.state not in (PodState.FAILED, PodState.LOST):
        return None
    end = facts_of(pod).end or {}
    status = pod.get("status") or {}
    cause, message = _cause(pod, view.state, end, status)
    program_end = end_of(view)
    # Also if the pod was disrupted later: a node whose kubelet hangs tells late that the container has ended.
    if program_end.straggler and end.get("exitCode") == STALLED:
        cause, message = Cause.STALLED, f"{program_end.stalled_words(view.task.id)} (exit code {STALLED})"
    message = message.replace("failed (exit code", f"{program_end.words} (exit code", 1)
    failure = of_pod(view.task, pod, cause, _time(pod, status) or now, message, program_end.log_tail)
    return replace(failure, exit_code=end.get("exitCode"), end=program_end)


def end_of(view: TaskView) -> ProgramEnd:
    """What the pod of the current attempt shows of its end: what its supervisor reported."""
    if view.pod is None:
        return UNKNOWN
    end, status = facts_of(view.pod).end, view.pod.get("status") or {}
    if end and view.supervised:
        return ProgramEnd.of((end.get("message") or status.get("message") or "").strip())
    said = (end or failed_init_end(status)).get("message") or status.get("message") or ""
    return ProgramEnd(said=said.strip())


def of_pod(task: Task, pod: Manifest, cause: Cause, time: datetime, message: str, log_tail: str = "") -> Failure:
    """The failure of this pod. If the pod has not ended, its time is that at which it is seen."""
    return Failure(task, cause, time, pod["metadata"]["name"], node_of(pod), message, log_tail)


def vanished(task: Task, pod_name: str, now: datetime) -> Failure:
    """The failure of a pod that existed and is gone: somebody deleted it while nobody watched."""
    return Failure(task, Cause.DELETED, now, pod_name, "", "was deleted", "")


def disruption_of(pod: Manifest) -> str | None:
    """The reason of the pod's condition DisruptionTarget; None if that does not hold.

    The Eviction API and the scheduler set it when they ask the pod to end. A kubelet sets it when the containers have
    ended. The controllers of nodes set it when they notice that a node is gone.
    """
    said = condition_of(pod, "DisruptionTarget")
    if said.get("status") != "True":
        return None
    return str(said.get("reason") or (pod.get("status") or {}).get("reason") or "DisruptionTarget")


def _time(pod: Manifest, status: dict[str, Any]) -> datetime | None:
    """When the pod failed, as its node or whoever disrupted it wrote; None if nobody did."""
    init = failed_init_end(status)
    written = [init.get("finishedAt"), condition_of(pod, "DisruptionTarget").get("lastTransitionTime")]
    if end := facts_of(pod).end or init:  # it may have no time: then the earliest one, as `now` moves with each look
        written += [end.get("startedAt"), pod["metadata"]["creationTimestamp"]]
    return ended_at(pod) or next((times.parse(text) for text in written if text), None)


def _cause(pod: Manifest, state: PodState, end: dict[str, Any], status: dict[str, Any]) -> tuple[Cause, str]:
    """The cause and what happened to the pod, in words. What was done to the pod explains the ends of its
    containers."""
    if state is PodState.LOST:
        return Cause.DISRUPTION, "was lost with its node"
    if (disruption := disruption_of(pod)) is not None:
        return Cause.DISRUPTION, f"was disrupted ({disruption})"
    done = _done_by_its_node(status.get("reason") or "", status.get("message") or "")
    if done is None and deleting(pod):
        return Cause.DELETED, "was deleted"
    return done or _end_of_its_own(pod, end, status)


def _done_by_its_node(pod_reason: str, message: str) -> tuple[Cause, str] | None:
    """What the node did to the pod, from the reason and message that it gave; None if it did nothing."""
    if pod_reason == "Evicted" and OVER_OWN_LIMIT.search(message):
        return Cause.STORAGE_LIMIT_EXCEEDED, f"was evicted: {message.strip().rstrip('.')}"
    if pod_reason in NEVER_RAN_REASONS or pod_reason.startswith("OutOf"):
        return Cause.NOT_STARTED, f"never started ({pod_reason})"
    if pod_reason in DISRUPTION_REASONS:
        return Cause.DISRUPTION, f"was disrupted ({pod_reason})"
    return None


def _end_of_its_own(pod: Manifest, end: dict[str, Any], status: dict[str, Any]) -> tuple[Cause, str]:
    """What the end of the training container shows. If it never began, what the end of an init container shows."""
    if not end and (failed_init := failed_init_end(status)):
        if failed_init.get("reason") in UNKNOWN_END_REASONS:
            how = f"init container {failed_init['name']} ended with an unknown exit code ({failed_init['reason']})"
            return Cause.DISRUPTION, f"never started: {how}"
        cause, how = _how(pod, failed_init["name"], failed_init)
        return cause, f"never started: init container {failed_init['name']} {how}"
    if not end:
        return Cause.NOT_STARTED, f"never started ({status.get('reason') or 'no container status'})"
    if end.get("reason") in UNKNOWN_END_REASONS:
        return Cause.DISRUPTION, f"ended with an unknown exit code, as when its node restarts ({end['reason']})"
    cause, how = _how(pod, TRAINING_CONTAINER, end)
    if killed := _sidecar_out_of_memory(status, end):
        return cause, f"{how} after container {killed} {_out_of_memory(pod, killed)}"
    return cause, how


def _sidecar_out_of_memory(status: dict[str, Any], end: dict[str, Any]) -> str:
    """The name of a container beside the training, which was killed for memory before that failed; empty for none."""
    for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        for state in (one.get("state") or {}, one.get("lastState") or {}):
            other = state.get("terminated") or {}
            before = (other.get("finishedAt") or "") <= (end.get("finishedAt") or "")
            if other.get("reason") == OOM_KILLED and one["name"] != TRAINING_CONTAINER and before:
                return str(one["name"])
    return ""


def _how(pod: Manifest, container: str, end: dict[str, Any]) -> tuple[Cause, str]:
    """What any container's end says of it."""
    if end.get("reason") == OOM_KILLED:
        return Cause.OOM_KILLED, _out_of_memory(pod, container)
    code = int(end.get("exitCode", 1))
    if number := int(end.get("signal") or signal_of(code) or 0):
        return Cause.SIGNAL, f"was killed ({_name(number) or f'signal {number}'})"
    if code == RESTARTED_IN_VAIN:
        return Cause.ERROR, f"kept losing its peers without a new step (exit code {code})"
    return Cause.ERROR, f"failed (exit code {code})"


def _out_of_memory(pod: Manifest, container: str) -> str:
    """That a container ran out of memory, with its limit where it has one. The pod's own, as others than the job may
    set it: a LimitRange or a webhook."""
    spec = pod.get("spec") or {}
    for one in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        limit = ((one.get("resources") or {}).get("limits") or {}).get("memory")
        if one["name"] == container and limit:
            return f"ran out of memory (OOMKilled, limits.memory is {limit})"
    return "ran out of memory (OOMKilled)"


UNKNOWN_END_REASONS = ("ContainerStatusUnknown", "Unknown")
"""Reasons of a container's end whose exit code is unknown: the kubelet makes up 137, containerd 255."""


@dataclass(frozen=True)
class Evidence:
    """What one pod shows."""

    exit_code: int | None = None
    """Of the training container, or the init container that failed before it; None if it did not end, or with 0, or
    where nobody saw it."""
    signal: str = ""
    """The name of the signal that ended it; empty if none did."""
    reasons: tuple[str, ...] = ()
    """Of the container's end, of the pod, and of containers that cannot start."""
    conditions: tuple[Mapping[str, Any], ...] = ()
    """Of the pod, as they are in its status."""


def evidence_of(pod: Manifest) -> Evidence:
    """What the pod shows."""
    status = pod.get("status") or {}
    end = facts_of(pod).end
    if end is None:
        end = failed_init_end(status)
    # A code that somebody saw.
    code = end.get("exitCode") or None if end.get("reason") not in UNKNOWN_END_REASONS else None
    number = int(end.get("signal") or signal_of(code) or 0) if code else 0
    stalled = code == STALLED and bool(ProgramEnd.of(str(end.get("message") or "")).straggler)
    own = (str(end.get("reason") or ""), str(status.get("reason") or ""))
    reasons = (Cause.STALLED.value if stalled else "", *own, *(reason for reason, _ in waiting(pod)))
    return Evidence(code, _name(number), tuple(filter(None, reasons)), tuple(status.get("conditions") or ()))


def waiting(pod: Manifest) -> Iterator[tuple[str, str]]:
    """Why containers do not start, of those that training waits for (its own, and init containers): reason, message."""
    if facts_of(pod).end is not None:
        return
    status = pod.get("status") or {}
    training = (one for one in status.get("containerStatuses") or () if one["name"] == TRAINING_CONTAINER)
    for container in (*(status.get("initContainerStatuses") or ()), *training):
        said = (container.get("state") or {}).get("waiting") or {}
        if reason := said.get("reason"):
            yield str(reason), str(said.get("message") or "")


def failed_init_end(status: dict[str, Any]) -> dict[str, Any]:
    """How the first failed init container ended, with its name; empty if none failed."""
    for container in status.get("initContainerStatuses") or ():
        end = (container.get("state") or {}).get("terminated") or {}
        if end.get("exitCode"):
            return {**end, "name": container["name"]}
    return {}


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
