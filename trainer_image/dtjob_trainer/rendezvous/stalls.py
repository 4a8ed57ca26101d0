"""Which task do the others wait for, where training makes no step? Pure: takes `now`, does no I/O (host.py does it).

Each supervisor counts by its own clock for how long its training process has made no step, and says so. In a
synchronous group all notice at about the same time that one is behind, so who that is, is decided once, here, from what
all of them say. The one that is named ends its container; the others then lose a peer, as after any failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dtjob_trainer.contract.doing import CALLBACKS, DATA, IN_WORDS
from dtjob_trainer.rendezvous.messages import Registration
from dtjob_trainer.rendezvous.words import is_ps

SETTLE_SECONDS = 3.0
"""From the first word of a stall until a straggler is named: what others say may be two seconds old."""
AFTERMATH_SECONDS = 30.0
"""After a straggler was named: the others take up to 10 s to lose it, and one that steps again says so soon."""


@dataclass(frozen=True)
class Heard:
    """What is known of one task."""

    task: str
    registration: Registration | None
    silent: bool
    """Its supervisor has not been heard for some time, or never."""


@dataclass(frozen=True)
class Named:
    """The straggler of a stall."""

    task: str
    how: str
    """How it is behind, in words."""
    told: tuple[int, str, int]
    """The training process whose supervisor ends its container: the straggler's, or where that is silent that of a task
    which waits for it."""


class Stalls:
    """Remembers since when training has stalled, and whom it has named."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._named: Named | None = None
        self._quiet_until = self._looked_at = -AFTERMATH_SECONDS

    def look(self, registration: Registration, heard: Callable[[], Sequence[Heard]], now: float) -> bool:
        """Take note of a `registration`; whether a straggler was named. `heard` is asked only where there is a stall,
        once a second at most: a job may have thousands of tasks."""
        if not registration.stalled and self._since is None:
            return False
        if now < self._quiet_until or now - self._looked_at < 1.0:
            return False
        self._looked_at = now
        known = heard()
        if not is_stalled(known):
            self._since = None
            return False
        if self._since is None:
            self._since = now
        if now - self._since < SETTLE_SECONDS:
            return False
        self._named, self._since, self._quiet_until = straggler(known), None, now + AFTERMATH_SECONDS
        return True

    def named(self, registration: Registration) -> Named | None:
        """The straggler over which the supervisor of this training process is to end its container."""
        return self._named if self._named is not None and self._named.told == registration.process else None


def is_stalled(heard: Sequence[Heard]) -> bool:
    """Whether a task says so, and there is something to wait for: a ParameterServer chief whose ps are away, or all of
    its workers, waits for pods."""
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
    steps = [each.step for each in here if each.step is not None and each.phase == "running"]
    most = max(steps, default=0)
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
        # most of them in a callback wait there for the one that has skipped it
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


def _odd_one_out(running: Sequence[Registration]) -> Registration | None:
    """The one that does something else than all others; None where there is none, or more than one."""
    counts = Counter(each.doing for each in running)
    rare = [doing for doing, count in counts.items() if count == 1]
    if len(running) < 3 or len(counts) != 2 or len(rare) != 1:
        return None
    return next(each for each in running if each.doing == rare[0])
