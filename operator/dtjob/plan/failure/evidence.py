# SPDX-License-Identifier: Apache-2.0
"""Evidence: what a pod shows of its failure, as the criteria of failure rules read it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.objects.exit_codes import STALLED, signal_of
from dtjob.objects.manifest import Manifest
from dtjob.plan.record.failure import Cause
from dtjob.plan.record.program_end import ProgramEnd
from dtjob.plan.seen.children import terminated

UNSEEN_END_REASONS = ("ContainerStatusUnknown", "Unknown")
"""Reasons of a container's end that nobody saw, the kubelet's and containerd's, with exit codes 137 and 255 made up."""


@dataclass(frozen=True)
class Condition:
    """A condition of the pod."""

    type: str
    status: str
    reason: str


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
    conditions: tuple[Condition, ...] = ()


def evidence_of(pod: Manifest) -> Evidence:
    """What the pod shows."""
    status = pod.get("status") or {}
    end = terminated(pod)
    if end is None:
        end = failed_init_end(status)
    code, number = _seen_end(end)
    stalled = code == STALLED and bool(ProgramEnd.of(str(end.get("message") or "")).straggler)
    own = (str(end.get("reason") or ""), str(status.get("reason") or ""))
    reasons = (Cause.STALLED.value if stalled else "", *own, *(reason for reason, _ in waiting(pod)))
    conditions = (
        Condition(str(one["type"]), str(one["status"]), str(one.get("reason") or ""))
        for one in status.get("conditions") or ()
    )
    return Evidence(code, _name(number), tuple(filter(None, reasons)), tuple(conditions))


def waiting(pod: Manifest) -> Iterator[tuple[str, str]]:
    """Why containers do not start, of those that training waits for (its own, and init containers): reason, message."""
    if terminated(pod) is not None:
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


def _seen_end(end: dict[str, Any]) -> tuple[int | None, int]:
    """Exit code and signal's number (0: none) of a failure that somebody saw."""
    code = end.get("exitCode")
    if not code or end.get("reason") in UNSEEN_END_REASONS:
        return None, 0
    return int(code), int(end.get("signal") or signal_of(int(code)) or 0)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
