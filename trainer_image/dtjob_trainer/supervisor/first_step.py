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


class EarlyWords:
    """What the kubelet finds if this supervisor is killed together with its container before the first step.

    A kernel that runs out of memory does that. After a failure that the supervisor sees, its log line has the same
    facts. The kubelet takes the end of the log if this file is empty (FallbackToLogsOnError).
    """

    def __init__(self, file: str, task: str, attempt: int) -> None:
        """`file`: path of the container's termination log. Empty: there is none."""
        self._file = Path(file) if file else None
        self._text = json.dumps({"task": task, "attempt": attempt, "stepped": False})
        self._left = False

    def leave(self) -> None:
        """Write that no step is done so far. Text that is already in the file stays."""
        with contextlib.suppress(OSError):  # the end reports the same error
            if self._file is not None and not self._left and not (self._file.exists() and self._file.read_text()):
                self._file.write_text(self._text)
                self._left = True

    def take_back(self) -> None:
        """Empty the file: a step may be done, or the supervisor itself ends and reports that."""
        with contextlib.suppress(OSError):
            if self._file is not None and self._left and self._file.read_text() == self._text:
                self._file.write_text("")  # not removed, because it is a mount
            self._left = False


class FirstStep:
    """What the reports of the training processes of one supervisor say about the first step."""

    def __init__(self, words: EarlyWords | None = None, *, known: bool = True) -> None:
        """`words` are taken back once a step may be done. `known` is False for a task that trains no steps."""
        self._words, self._counts = words, known
        self._done: bool | None = False if known else None
        self._processes, self._in_a_loop, self._restored = 0, False, 0

    @classmethod
    def of(cls, task: Task) -> "FirstStep":
        """The FirstStep of a task. It is known for tasks that train with others, and not for the evaluator."""
        if task.serves_only or task.is_evaluator:
            return cls(known=False)
        return cls(EarlyWords(task.termination_log, task.id, task.attempt))

    @property
    def done(self) -> bool | None:
        """Whether a step was done that was not restored. None: not known."""
        return self._done

    def begins(self) -> None:
        """The supervisor is about to start training processes."""
        if self._words is not None and self._done is False:
            self._words.leave()

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
        elif self._done is False and report.get("trainsItself"):
            self._is(None)

    def look_later(self) -> None:
        """The training process has got its go. Needs a running event loop."""
        asyncio.get_running_loop().call_later(OWN_TRAINING_SECONDS, self.lasts, self._processes)

    def lasts(self, process: int) -> None:
        """Training process number `process` got its go OWN_TRAINING_SECONDS ago."""
        if process == self._processes and self._done is False and not self._in_a_loop:
            self._is(None)

    def ends(self) -> None:
        """The supervisor itself ends and reports how."""
        if self._words is not None:
            self._words.take_back()

    def _is(self, done: bool | None) -> None:
        self._done = done
        self.ends()
