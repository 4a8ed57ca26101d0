# SPDX-License-Identifier: Apache-2.0
"""Whether a task has done a training step since its supervisor began. A failure before that may be a program error.

Only steps of `fit` and `train` are known. A program that trains by other means may have done any number of steps.
"""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dtjob_trainer.contract.task import Task

OWN_TRAINING_SECONDS = 600.0
"""If a program has called neither `fit` nor `train` so long after its go, it may be training by other means."""


class FirstStep:
    """What the reports of the training processes of one supervisor say about the first step.

    Until a step may be done, the container's termination log says that none is. The kubelet finds these words if this
    supervisor is killed together with its container, as by a kernel that runs out of memory. After a failure that the
    supervisor sees, its log line has the same facts. The kubelet takes the end of the log if the file is empty
    (FallbackToLogsOnError).
    """

    def __init__(self, task: Task) -> None:
        """The first step is known for tasks that train with others, and not for the evaluator."""
        self._counts = not (task.serves_only or task.is_evaluator)
        self.done: bool | None = False if self._counts else None
        """Whether a step was done that was not restored. None: not known."""
        self._file = Path(task.termination_log) if self._counts and task.termination_log else None
        self._words = json.dumps({"task": task.id, "attempt": task.attempt, "stepped": False})
        self._processes, self._in_a_loop, self._restored = 0, False, 0

    def begins(self) -> None:
        """The supervisor is about to start training processes. Text that is already in the file stays."""
        with contextlib.suppress(OSError):  # the end reports the same error
            if self._file is not None and not (self._file.exists() and self._file.read_text()):
                self._file.write_text(self._words)

    def process_started(self) -> None:
        """A new training process begins."""
        self._processes += 1
        self._in_a_loop, self._restored = False, 0

    def heard(self, report: Mapping[str, Any]) -> None:
        """The training process reports."""
        if isinstance(report.get("restoredStep"), int):
            self._restored = report["restoredStep"]
        self._in_a_loop |= report.get("state") == "training"
        step = report.get("step")
        if self._counts and isinstance(step, int) and step > self._restored:
            self._is(True)
        elif self.done is False and report.get("trainsItself"):
            self._is(None)

    def look_later(self) -> None:
        """The training process has got its go. Needs a running event loop."""
        asyncio.get_running_loop().call_later(OWN_TRAINING_SECONDS, self.lasts, self._processes)

    def lasts(self, process: int) -> None:
        """Training process number `process` got its go OWN_TRAINING_SECONDS ago."""
        if process == self._processes and self.done is False and not self._in_a_loop:
            self._is(None)

    def ends(self) -> None:
        """Empty the file: a step may be done, or the supervisor itself ends and reports how."""
        with contextlib.suppress(OSError):
            if self._file is not None and self._file.read_text() == self._words:
                self._file.write_text("")  # not removed, because it is a mount

    def _is(self, done: bool | None) -> None:
        if self.done != done:
            self.done = done
            self.ends()
