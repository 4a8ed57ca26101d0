"""Tells the supervisor where training is while it makes no step, for it to see who is behind. No TensorFlow here.

The loops note what they are in, which costs an assignment a step; a thread tells of what lasts.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dtjob_trainer.contract.doing import DATA, STEPPING
from dtjob_trainer.process.progress import Progress

SECONDS = 0.5
"""Between two looks; what lasts longer than that is told."""
_CALLS_PYTHON = ("tensorflow", "python", "ops", "script_ops.py")
"""The file of TensorFlow's through which its graphs call Python: generators and functions of data."""


class Pulse:
    """What the training process is in between two steps."""

    def __init__(self, progress: Progress) -> None:
        self.doing = STEPPING
        self.moves = 0
        """Grows with each step, and whenever `doing` is set."""
        self.steps_done: Callable[[], int] = lambda: 0
        """How many steps are done, also of those that nothing was reported of yet."""
        self._progress = progress
        self._begun = False
        self._resting = 0
        self._told = ""

    def enter(self, doing: str) -> None:
        """Training is in something else from now on, or in the same once more."""
        self.doing = doing
        self.moves += 1

    def begin(self) -> None:
        """Tell the supervisor from now on."""
        self._begun = True
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    @contextmanager
    def resting(self, doing: str) -> Iterator[None]:
        """While this lasts no step is to be expected. Told at once: this thread may not let another one run."""
        before, self._resting = self.doing, self._resting + 1
        self.enter(doing)
        self._tell(doing)
        try:
            yield
        finally:
            self._resting -= 1
            self.enter(before)
            self._tell(before)

    def _beat(self) -> None:
        seen = -1
        while True:
            time.sleep(SECONDS)
            self._progress.flush()
            step = self.steps_done()
            if step > (self._progress.status.get("step") or 0):
                self._progress.report(step=step)
            lasts, seen = seen == self.moves, self.moves
            if lasts and not self._resting:
                in_data = self.doing == STEPPING and in_called_python()
                self._tell(DATA if in_data else self.doing)

    def _tell(self, doing: str) -> None:
        if self._begun and doing != self._told:
            self._told = doing
            self._progress.report(doing=doing)


def in_called_python() -> bool:
    """Whether some thread is in Python that a graph of TensorFlow's has called, as graphs do that read data."""
    for frame in sys._current_frames().values():
        at = frame
        while at is not None:
            if tuple(at.f_code.co_filename.replace("\\", "/").rsplit("/", 4)[-4:]) == _CALLS_PYTHON:
                return True
            at = at.f_back  # type: ignore[assignment]
    return False
