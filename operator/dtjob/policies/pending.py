"""Pending: why a pod does not run, in words for the status."""

from __future__ import annotations

from datetime import datetime

from dtjob.actions import Manifest
from dtjob.children import PodState, TaskView, container_status, ended

HARMLESS_WAITS = ("", "ContainerCreating", "PodInitializing")


def waiting_reason(views: list[TaskView], now: datetime) -> str:
    """What the first task that cannot start waits for, such as an image; empty where every pod is well."""
    for view in views:
        # Only the task that writes checkpoints waits for its predecessor, and it stands first.
        old = next((pod for pod in view.pods if not ended(pod)), None) if view is views[0] else None
        if view.pod is None and old is not None:
            node = (old.get("spec") or {}).get("nodeName", "")
            where = f" on node {node}" if node else ""
            return f"{view.task.id} waits: its earlier pod {old['metadata']['name']}{where} has not ended"
        if view.pod is not None and view.state(now) is PodState.PENDING:
            reason = _reason(view.pod)
            if reason:
                return f"{view.task.id} waits: {reason}"
    return ""


def _reason(pod: Manifest) -> str:
    waiting = (container_status(pod).get("state") or {}).get("waiting") or {}
    if waiting.get("reason", "") not in HARMLESS_WAITS:
        return ": ".join(text for text in (waiting["reason"], waiting.get("message", "")) if text)
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return ": ".join(text for text in (condition.get("reason", ""), condition.get("message", "")) if text)
    return ""
