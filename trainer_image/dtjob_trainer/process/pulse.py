# SPDX-License-Identifier: Apache-2.0
"""Reports to the supervisor what training does while it makes no step. So stragglers are found. No TensorFlow here.

The loops note what they do, which costs less than a microsecond a step. A thread reports what lasts.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from dtjob_trainer.contract.doing import DATA, STEPPING
from dtjob_trainer.frameworks import python
from dtjob_trainer.process.progress import Progress

SECONDS = 0.5
"""The thread looks so often. What lasts longer is reported."""
_CALLS_PYTHON = ("tensorflow", "python", "ops", "script_ops.py")
"""The file through which TensorFlow's graphs call Python: generators and functions of data."""
_MEETS_OTHERS = ("dtjob_trainer", "strategies", "collective.py")
"""The file of ours in which tasks wait for each other between two steps, and while they read data."""
_WAITS_FOR_STEPS = ("tensorflow", "python", "eager", "executor.py")
"""The file in which a ParameterServer chief waits for the steps that it has handed out, and while it reads data."""


class Pulse:
    """What the training process does between two steps."""

    def __init__(self, progress: Progress) -> None:
        self.doing = STEPPING
        self.moves = 0
        """Grows with each step, and whenever `doing` is set."""
        self.steps_done: Callable[[], int] = lambda: 0
        """How many steps of the present stage are done, with those that are not reported yet."""
        self._progress = progress
        self._begun = False
        self._resting = 0
        self._told = ""
        self._stepped, self._since = 0.0, time.monotonic()

    def enter(self, doing: str) -> None:
        """Training does `doing` from now on. It may be the same as before."""
        self._count()
        self.doing = doing
        self.moves += 1

    def stepping_seconds(self) -> float:
        """For how many seconds training has read batches and run steps so far. Asked by the training thread."""
        self._count()
        return self._stepped

    def begin(self) -> None:
        """Report to the supervisor from now on."""
        self._begun = True
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def report_steps(self) -> None:
        """Report the steps that are done, if not all are reported yet."""
        step = self.steps_done()
        if step > (self._progress.status.get("step") or 0) - self._progress.steps_before:
            self._progress.report(step=step)

    @contextmanager
    def resting(self, doing: str) -> Iterator[None]:
        """In this context no step is expected. Reported at once: this thread may block the one that reports."""
        before, self._resting = self.doing, self._resting + 1
        self.enter(doing)
        self._tell(doing)
        try:
            yield
        finally:
            self._resting -= 1
            self.enter(before)
            self._tell(before)

    def _count(self) -> None:
        now = time.monotonic()
        if self.doing in (DATA, STEPPING):
            self._stepped += now - self._since
        self._since = now

    def _beat(self) -> None:
        seen = -1
        while True:
            time.sleep(SECONDS)
            self._progress.flush()
            self.report_steps()
            lasts, seen = seen == self.moves, self.moves
            if lasts and not self._resting:
                self._tell(where(self.doing))

    def _tell(self, doing: str) -> None:
        if self._begun and doing != self._told:
            self._told = doing
            self._progress.report(doing=doing)


def where(doing: str) -> str:
    """What the process really does while its loop says `doing`, judged by the stacks of its threads."""
    frames = python.stacks()
    main = frames.get(threading.main_thread().ident or 0)
    if _passes(main, _MEETS_OTHERS) or _passes(main, _WAITS_FOR_STEPS):
        return STEPPING
    if doing == STEPPING and any(_passes(frame, _CALLS_PYTHON) for frame in frames.values()):
        return DATA
    return doing


def _passes(frame: FrameType | None, file: tuple[str, ...]) -> bool:
    """Whether this frame, or one that has called it, is in a file whose path ends like this."""
    while frame is not None:
        if tuple(frame.f_code.co_filename.rsplit("/", len(file))[-len(file) :]) == file:
            return True
        frame = frame.f_back
    return False
