# SPDX-License-Identifier: Apache-2.0
"""A pod's status as a kubelet would write it, from what a local process did. Pure."""

from datetime import datetime
from typing import Any

from dtjob import times
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.local.processes.addresses import HOST
from dtjob.objects.exit_codes import of_signal

MESSAGE_BYTES = 2048
MESSAGE_LINES = 80
"""The kubelet's limits for FallbackToLogsOnError."""
MESSAGE_BYTES_LEFT = 4096
"""The kubelet's limit for what a container leaves at its terminationMessagePath."""


def running(started_at: datetime) -> dict[str, Any]:
    """The status of a pod whose process runs."""
    return _status("Running", {"running": {"startedAt": times.rfc3339(started_at)}}, ready=True)


def ended(
    return_code: int, started_at: datetime, finished_at: datetime, log: str, last_words: str = ""
) -> dict[str, Any]:
    """The status of a pod whose process has ended.

    `return_code` is as Python's subprocess gives it (negative for a signal); `log` is the end of its log, which becomes
    the termination message after a failure, as the kubelet does it (FallbackToLogsOnError), where the process left no
    `last_words` in its termination log.
    """
    code = of_signal(-return_code) if return_code < 0 else return_code
    terminated: dict[str, Any] = {
        "exitCode": code,
        "reason": "Completed" if code == 0 else "Error",
        "startedAt": times.rfc3339(started_at),
        "finishedAt": times.rfc3339(finished_at),
    }
    if return_code < 0:
        terminated["signal"] = -return_code
    if message := last_words[:MESSAGE_BYTES_LEFT] or (tail(log) if code else ""):
        terminated["message"] = message
    return _status("Succeeded" if code == 0 else "Failed", {"terminated": terminated}, ready=False)


def tail(log: str) -> str:
    """The last lines of a log, within the kubelet's limits."""
    last = "\n".join(log.rstrip().splitlines()[-MESSAGE_LINES:])
    return last.encode()[-MESSAGE_BYTES:].decode(errors="ignore")


def _status(phase: str, state: dict[str, Any], ready: bool) -> dict[str, Any]:
    container = {"name": TRAINING_CONTAINER, "ready": ready, "restartCount": 0, "state": state}
    return {"phase": phase, "podIP": HOST, "containerStatuses": [container]}
