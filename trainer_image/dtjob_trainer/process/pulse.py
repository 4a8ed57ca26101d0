"""Tells the supervisor where training is while it makes no step, for it to see who is behind. No TensorFlow here.

The loops note what they are in, which costs an assignment a step; a thread tells of what lasts.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from dtjob_trainer.contract.doing import DATA, STEPPING
from dtjob_trainer.process.progress import Progress

SECONDS = 0.5
"""Between two looks; what lasts longer than that is told."""
_CALLS_PYTHON = ("tensorflow", "python", "ops", "script_ops.py")
"""The file of TensorFlow's through which its graphs call Python: generators and functions of data."""
_MEETS_OTHERS = ("dtjob_trainer", "strategies", "collective.py")
"""Our own file in which tasks wait for each other between two steps, also while they read data."""
_WAITS_FOR_STEPS = ("tensorflow", "python", "eager", "executor.py")
"""The file of TensorFlow's in which a ParameterServer chief waits for what it has handed out, also as it reads data."""


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
                self._tell(where(self.doing))

    def _tell(self, doing: str) -> None:
        if self._begun and doing != self._told:
            self._told = doing
            self._progress.report(doing=doing)


def where(doing: str) -> str:
    """What a process is really in that is in `doing` as far as its loop knows, by where its threads are."""
    frames = sys._current_frames()
    main = frames.get(threading.main_thread().ident or 0)
    if _passes(main, _MEETS_OTHERS) or _passes(main, _WAITS_FOR_STEPS):
        return STEPPING
    if doing == STEPPING and any(_passes(frame, _CALLS_PYTHON) for frame in frames.values()):
        return DATA
    return doing


def _passes(frame: FrameType | None, file: tuple[str, ...]) -> bool:
    """Whether this frame, or one that has called it, is of a file whose path ends so."""
    while frame is not None:
        if tuple(frame.f_code.co_filename.rsplit("/", len(file))[-len(file) :]) == file:
            return True
        frame = frame.f_back
    return False
