"""Why a pod failed, and whether that is the job's own doing."""

from __future__ import annotations

import signal
from datetime import datetime
from typing import Any

from dtjob.objects.exit_codes import RESTARTED_IN_VAIN, signal_of
from dtjob.objects.manifest import Manifest
from dtjob.objects.topology import Task
from dtjob.plan.children import PodState, TaskView, deleting, ended_at, terminated
from dtjob.plan.failure import Cause, Failure

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

UNSEEN_END_REASONS = ("ContainerStatusUnknown", "Unknown")
"""Reasons of a container's end that nobody saw, the kubelet's and containerd's, with exit codes 137 and 255 made up."""


def failure_of(view: TaskView, now: datetime) -> Failure | None:
    """The failure of the task's current attempt, None where it has not failed. A deletionTimestamp alone is no
    failure."""
    pod = view.pod
    if pod is None or view.state not in (PodState.FAILED, PodState.LOST):
        return None
    end = terminated(pod) or {}
    status = pod.get("status") or {}
    cause, reason = _cause(pod, view.state, end, status)
    said = end.get("message") or _failed_init_end(status).get("message") or status.get("message") or ""
    return Failure(
        task=view.task,
        cause=cause,
        time=ended_at(pod) or now,
        pod=pod["metadata"]["name"],
        node=(pod.get("spec") or {}).get("nodeName", ""),
        reason=reason,
        message=said.strip(),
        exit_code=end.get("exitCode"),
    )


def vanished(task: Task, pod_name: str, now: datetime) -> Failure:
    """The failure of a pod that was there and is gone without a trace: somebody deleted it while nobody looked."""
    return Failure(task, Cause.DELETED, now, pod_name, "", "was deleted", "")


def _cause(pod: Manifest, state: PodState, end: dict[str, Any], status: dict[str, Any]) -> tuple[Cause, str]:
    """The cause and what became of the pod, in words. What was done to a pod explains its containers' ends too."""
    return _done_to(pod, state, status) or _end_of_its_own(end, status)


def _done_to(pod: Manifest, state: PodState, status: dict[str, Any]) -> tuple[Cause, str] | None:
    """What node, scheduler or user did to the pod, None where it ended by itself."""
    if state is PodState.LOST:
        return Cause.DISRUPTION, "was lost with its node"
    disruption = next(
        (c for c in status.get("conditions") or () if c["type"] == "DisruptionTarget" and c["status"] == "True"), None
    )
    pod_reason = status.get("reason") or ""
    if disruption is not None:
        return Cause.DISRUPTION, f"was disrupted ({disruption.get('reason') or pod_reason or 'DisruptionTarget'})"
    if pod_reason in NEVER_RAN_REASONS or pod_reason.startswith("OutOf"):
        return Cause.NOT_STARTED, f"never started ({pod_reason})"
    if pod_reason in DISRUPTION_REASONS:
        return Cause.DISRUPTION, f"was disrupted ({pod_reason})"
    if deleting(pod):
        return Cause.DELETED, "was deleted"
    return None


def _end_of_its_own(end: dict[str, Any], status: dict[str, Any]) -> tuple[Cause, str]:
    """What the training container's end says, and where it never began an init container's."""
    if not end and (failed_init := _failed_init_end(status)):
        cause, how = _exit(int(failed_init["exitCode"]), int(failed_init.get("signal") or 0))
        return cause, f"never started: init container {failed_init['name']} {how}"
    if not end:
        return Cause.NOT_STARTED, f"never started ({status.get('reason') or 'no container status'})"
    if end.get("reason") in UNSEEN_END_REASONS:
        return Cause.DISRUPTION, f"ended unseen, as when its node restarts ({end['reason']})"
    if end.get("reason") == "OOMKilled":
        return Cause.OOM_KILLED, "ran out of memory (OOMKilled)"
    return _exit(int(end.get("exitCode", 1)), int(end.get("signal") or 0))


def _failed_init_end(status: dict[str, Any]) -> dict[str, Any]:
    """How the first failed init container ended, with its name; empty where none failed."""
    for container in status.get("initContainerStatuses") or ():
        end = (container.get("state") or {}).get("terminated") or {}
        if end.get("exitCode"):
            return {**end, "name": container["name"]}
    return {}


def _exit(code: int, signal_number: int) -> tuple[Cause, str]:
    number = signal_number or signal_of(code)
    if number:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return Cause.SIGNAL, f"was killed ({name})"
    if code == RESTARTED_IN_VAIN:
        return Cause.ERROR, f"kept losing its peers without a new step (exit code {code})"
    return Cause.ERROR, f"failed (exit code {code})"
