# SPDX-License-Identifier: Apache-2.0
"""A source for pages with one job."""

from collections.abc import Mapping, Sequence
from typing import Any

from dtjob.client.errors import Refused
from dtjob.ui.hub import Hub, Key
from dtjob.ui.source import View
from tests.unit.operator.client.verbs.jobs import RUNNING, job, pod

HOSTILE = '</script><script>alert(1)</script>\u2028\nevent: gone\ndata: {}\n\n"\ud800'


class OneJob:
    """A source with one job, and a view of it, which says hostile things."""

    title, why, note = "a test", "", "from a test"

    def __init__(self) -> None:
        self.hub, self.tasks, self.closed = Hub(), list[str | None](), 0
        self.hub.take([("ADDED", job(**{**RUNNING, "message": HOSTILE}))])

    pods: Sequence[Mapping[str, Any]] = (pod("worker-0"),)
    reports: Mapping[str, Mapping[str, Any]] = {"worker-0": {"attempt": 0, "state": HOSTILE}}

    def view(self, key: Key, task: str | None) -> View:
        if task == "worker-9":
            raise Refused("you may not list pods", 403, "Forbidden")
        self.tasks.append(task)
        return self

    def log(self) -> list[str]:
        return [HOSTILE]

    def curves(self) -> list[dict[str, Any]]:
        return [{"name": HOSTILE, "steps": [1], "values": [0.5]}]

    def close(self, view: View) -> None:
        self.closed += 1
