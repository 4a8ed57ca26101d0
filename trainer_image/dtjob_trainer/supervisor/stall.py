# SPDX-License-Identifier: Apache-2.0
"""Stalls: training makes no new step for too long, by this supervisor's own clock.

Only time in which steps should come is counted: from the first step of a training process on, unless it validates or
saves. Time in which the process is stopped always counts. So compiling, restoring and reading the first batch are not
stalls, however long they take. In a group the chief task's supervisor decides who is behind (rendezvous/stalls.py).
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dtjob_trainer.contract.doing import IN_WORDS, NO_STALL
from dtjob_trainer.contract.log_line import Facts
from dtjob_trainer.contract.task import Task
from dtjob_trainer.supervisor import reaper

TICK_SECONDS = 1.0
ALONE_SECONDS = 30.0
"""If the chief task's supervisor does not answer for so long, a stalled task ends its container by itself."""
ABORT_SECONDS = 5.0
"""A process has so long to write the stacks of its threads before it is killed."""
STOPPED = "its process is stopped (SIGSTOP)"


@dataclass(frozen=True)
class Stall:
    """Why this container ends."""

    straggler: str
    how: str
    """How the straggler is behind, in words."""
    seconds: float

    @property
    def reason(self) -> str:
        """The stall in words."""
        return f"stalled: no new step for {self.seconds:g} s; {self.straggler} is behind: {self.how}"

    @property
    def facts(self) -> Facts:
        """The facts for the last log line, which the operator reads."""
        return {"straggler": self.straggler, "behind": self.how}


class StallGuard:
    """Watches for stalls of one task, over all of its training processes."""

    def __init__(
        self,
        task: Task,
        on_stall: Callable[[str, str], None],
        silent: Callable[[float], dict[str, int]] = lambda seconds: {},
    ) -> None:
        """`on_stall(straggler, how)` is called if the container must end and no rendezvous decides that.

        `silent(seconds)` returns tasks that this supervisor has not heard for so long, but had heard before, with their
        attempts.
        """
        self._task, self._on_stall, self._silent = task, on_stall, silent
        self._limit = task.stall_seconds
        """Seconds without a step that are a stall. None: nothing is a stall."""
        self._waited = self._unanswered = 0.0
        self._chief_attempt: int | None = None
        self.found: Stall | None = None
        """The stall because of which this container ends."""
        self.process_changed(None)

    def process_changed(self, pid: int | None) -> None:
        """Begin anew for training process `pid`. None: there is no training process now."""
        self._pid = pid
        self.stopped = False
        """Whether the training process is stopped by SIGSTOP or a tracer."""
        self.doing = ""
        """What the training process has reported that it does."""
        self._state = "waiting"
        self._step: int | None = None
        self._restored, self._stepped, self._still = 0, False, 0.0

    def heard(self, report: Mapping[str, Any]) -> None:
        """The training process reports."""
        self._restored = report["restoredStep"] if isinstance(report.get("restoredStep"), int) else self._restored
        self._state = str(report.get("state") or self._state)
        self.doing = str(report.get("doing", self.doing) or "")
        step = report.get("step")
        if isinstance(step, int) and step != self._step:
            self._step, self._still = step, 0.0
            self._stepped |= step > self._restored
        if not self._counts:
            self._still = 0.0

    def answered(self, chief_attempt: int) -> None:
        """The rendezvous has answered. `chief_attempt`: the attempt at the chief task that answered."""
        self._unanswered, self._chief_attempt = 0.0, chief_attempt

    def passes(self, seconds: float, *, stopped: bool = False) -> None:
        """This supervisor has run for `seconds`.

        - stopped: the training process was stopped, so it did not do what it reported last.
        """
        self.stopped = stopped
        self._still = self._still + seconds if self._counts or stopped else 0.0
        self._waited = self._waited + seconds if self._state == "waiting" else 0.0
        self._unanswered += seconds
        alone = not self._task.in_cluster or self._unanswered >= ALONE_SECONDS
        if self.over and alone:
            self._on_stall(self._task.id, STOPPED if stopped else IN_WORDS.get(self.doing, "in a step"))

    @property
    def _counts(self) -> bool:
        """Whether time counts now: steps should come."""
        return self._state == "training" and self._stepped and self.doing not in NO_STALL

    @property
    def over(self) -> bool:
        """Whether training has stalled and this container does not end for that yet."""
        return self._limit is not None and self._still >= self._limit and self.found is None

    @property
    def silent(self) -> dict[str, int]:
        """Tasks, with their attempts, whose silence has lasted for the stall timeout while the group waits for them.

        The operator knows whether their pods run, and replaces those.
        """
        limit, attempt = self._limit, self._chief_attempt
        if limit is None or self._waited < limit:
            return {}
        if self._task.is_chief:
            return self._silent(limit)
        return {self._task.members[0]: attempt} if attempt is not None and self._unanswered >= limit else {}

    @property
    def frozen(self) -> bool:
        """Whether the training process is stopped now. Always False without a stall timeout."""
        return self._limit is not None and self._pid is not None and reaper.is_stopped(self._pid)

    def find(self, straggler: str, how: str) -> Stall:
        """Note the stall because of which this container ends."""
        self.found = Stall(straggler, how, self._limit or 0.0)
        return self.found

    async def watch(self) -> None:
        """Watch until cancelled, if the job sets a stall timeout."""
        if self._limit is None:
            return
        tick, before = min(TICK_SECONDS, self._limit / 5), time.monotonic()
        while True:
            await asyncio.sleep(tick)
            now = time.monotonic()
            # Time in which this supervisor itself was stopped, as with its machine, does not count.
            passed, before = min(now - before, 2 * tick), now
            self.passes(passed, stopped=self.frozen)
