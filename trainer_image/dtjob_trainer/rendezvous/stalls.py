# SPDX-License-Identifier: Apache-2.0
"""Decides which task the others wait for if training makes no step. Pure: takes `now`, does no I/O (host.py does it).

Each supervisor measures by its own clock how long its training process has made no step, and reports it. In a
synchronous group all tasks notice at about the same time that one is behind. So it is decided once, here, from all
reports. The straggler ends its container. The others then lose a peer, as after any failure.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dtjob_trainer.contract.doing import CALLBACKS, DATA, IN_WORDS
from dtjob_trainer.rendezvous.messages import Registration
from dtjob_trainer.rendezvous.records import is_ps

SETTLE_SECONDS = 3.0
"""Least time from the first report of a stall until a straggler is named. All report what they do within a second."""
SILENT_SECONDS = 30.0
"""A task that was not heard for so long, or for the group's lease if that is longer, is silent.

Until then it may report a step that is not known here. On a busy machine a report takes many seconds."""
PATIENCE_SECONDS = 30.0
"""For so long no straggler is named if a task has not reported a stall yet. The report of its last step may be late."""
AFTERMATH_SECONDS = 30.0
"""No straggler is named for so long after the last one. The others take up to 10 s to lose it."""


@dataclass(frozen=True)
class Heard:
    """What is known about one task."""

    task: str
    registration: Registration | None
    silent: bool
    """Its supervisor was not heard for some time, or never."""
    heard_at: float = -math.inf
    """When it was last heard, by the clock of this supervisor."""


@dataclass(frozen=True)
class Named:
    """The straggler of a stall."""

    task: str
    how: str
    """How the straggler is behind, in words."""
    told: tuple[int, str, int]
    """The training process whose supervisor ends its container: the straggler's. If that is silent, the one of a task
    that waits for it."""


class Stalls:
    """Remembers since when training has stalled, and which straggler it has named."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._furthest = 0
        self._named: Named | None = None
        self._quiet_until = self._looked_at = -AFTERMATH_SECONDS

    def look(self, registration: Registration, heard: Callable[[], Sequence[Heard]], now: float) -> bool:
        """Note a `registration`. Returns whether a straggler was named.

        `heard` is called only if there is a stall, and once a second at most: a job may have thousands of tasks.
        """
        if not registration.stalled and self._since is None:
            return False
        if now < self._quiet_until or now - self._looked_at < 1.0:
            return False
        self._looked_at = now
        known = heard()
        if not is_stalled(known):
            self._since = None
            return False
        furthest = max(_steps(known), default=0)
        # A task that makes a step waits for no other: the report of its step was late.
        if self._since is None or furthest > self._furthest:
            self._since, self._furthest = now, furthest
        if now - self._since < SETTLE_SECONDS or not _is_settled(known, self._since, now):
            return False
        self._named, self._since, self._quiet_until = straggler(known), None, now + AFTERMATH_SECONDS
        return True

    def named(self, registration: Registration) -> Named | None:
        """The straggler because of which the supervisor of this training process must end its container, or None."""
        return self._named if self._named is not None and self._named.told == registration.process else None


def is_stalled(heard: Sequence[Heard]) -> bool:
    """Whether a task reports a stall that is not a wait for pods.

    A chief of ParameterServer waits for pods if its ps or all of its workers are away.
    """
    serving = [one for one in heard if one.registration is not None and one.registration.phase == "serving"]
    servers = [one for one in heard if one.registration is None or one.registration.phase == "serving"]
    if serving and all(one.silent for one in servers if not is_ps(one.task)):
        return False
    return any(one.registration is not None and _is_waiting(one) for one in heard)


def straggler(heard: Sequence[Heard]) -> Named:
    """The task that is behind. One of `heard` has stalled."""
    known = [(one, one.registration) for one in heard if one.registration is not None]
    waiting = next(registration for one, registration in known if _is_waiting(one))
    here = [registration for one, registration in known if not one.silent]
    most = max(_steps(heard), default=0)
    stopped = next((each for each in here if each.stopped), None)
    if stopped is not None:
        return Named(stopped.task, "its process is stopped (SIGSTOP)", stopped.process)
    behind = [each for each in here if each.phase == "running" and each.step is not None and each.step < most]
    if behind:
        last = min(behind, key=lambda each: each.step or 0)
        where = IN_WORDS.get(last.doing, "")
        return Named(last.task, f"at step {last.step}, others at {most}{where and ', '}{where}", last.process)
    running = [each for each in here if each.phase == "running"]
    for doing in (DATA, CALLBACKS):
        found = [each for each in running if each.doing == doing]
        # if most of them are in a callback, they wait there for the one that has skipped it
        if found and (doing == DATA or len(running) < 3 or 2 * len(found) < len(running)):
            return Named(found[-1].task, IN_WORDS[doing], found[-1].process)
    silent = next((one.task for one in heard if one.silent), None)
    if silent is not None:
        return Named(silent, "its supervisor is silent", waiting.process)
    odd = _odd_one_out(running)
    if odd is not None:
        return Named(odd.task, IN_WORDS.get(odd.doing, "elsewhere than the others"), odd.process)
    return Named(waiting.task, "no task is behind the others", waiting.process)


def _is_waiting(one: Heard) -> bool:
    return one.registration is not None and one.registration.stalled and not one.silent


def _steps(heard: Sequence[Heard]) -> list[int]:
    """The steps of the tasks that train and are not silent."""
    known = [one.registration for one in heard if one.registration is not None and not one.silent]
    return [each.step for each in known if each.step is not None and each.phase == "running"]


def _is_settled(heard: Sequence[Heard], since: float, now: float) -> bool:
    """Whether all that is known is about the stall that began at `since`.

    Each task was heard since then or is silent. And each task that trains has reported itself that no step came, or has
    had time for that.
    """
    late = now - since >= PATIENCE_SECONDS
    return all(one.silent or (one.heard_at >= since and (late or _stands(one.registration))) for one in heard)


def _stands(registration: Registration | None) -> bool:
    """Whether this task makes no steps: it reports a stall, or it never makes steps."""
    return registration is None or registration.phase != "running" or registration.stalled or registration.stopped


def _odd_one_out(running: Sequence[Registration]) -> Registration | None:
    """The task that does something else than all others. None if there is none or more than one."""
    counts = Counter(each.doing for each in running)
    rare = [doing for doing, count in counts.items() if count == 1]
    if len(running) < 3 or len(counts) != 2 or len(rare) != 1:
        return None
    return next(each for each in running if each.doing == rare[0])
