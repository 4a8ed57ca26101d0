"""What follows when the training process has ended? Pure: takes `now`, does no I/O (supervisor.py does it).

Exit 75 means that a peer was lost: the process starts again in this container. Anything else ends the container, so
that Kubernetes and the operator see it and count it. The exit codes are those of docs/contract.md.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from datetime import UTC, datetime

PEER_LOST = 75
STUCK = 76
TERMINATED = 143

EXITS_WITHOUT_PROGRESS = 3
"""So many exits 75 in a row, with no new step and no peer that changed, end the container: no blip loops unseen."""


@dataclass(frozen=True)
class History:
    """What the decision remembers from one training process to the next."""

    without_progress: int = 0
    """Exits 75 in a row without a new step and without a peer that changed."""
    highest_step: int = -1
    restarts: int = 0


@dataclass(frozen=True)
class Ended:
    """How a training process ended, and what its supervisor knew at that moment."""

    returncode: int
    """Exit code, or minus the signal's number, as in `subprocess`."""
    step: int | None = None
    """The last step that it reported."""
    terminating: bool = False
    """This supervisor was told to end (SIGTERM)."""
    ended_by_us: bool = False
    """We killed it, because its generation was over or the grace period ended: its signal 9 counts as exit 75."""
    chief_finished: bool = False
    """The chief task has said that training is done."""
    peer_changed: bool = False
    """A peer is known to have been replaced or preempted since this process got its go."""
    cause: str = ""
    """Which peer was lost, where that is known already."""


@dataclass(frozen=True)
class Restart:
    """Start the training process again in this container."""

    cause: str
    time: str
    """RFC 3339, UTC."""


@dataclass(frozen=True)
class End:
    """End the container with `code`."""

    code: int
    reason: str


def shell_code(returncode: int) -> int:
    """The exit code as a shell and Kubernetes show it: 128 + n for signal n."""
    return returncode if returncode >= 0 else 128 - returncode


def peers_changed(history: History) -> History:
    """A new generation began with a peer that was replaced: the exits before it had a reason."""
    return replace(history, without_progress=0)


def after_exit(history: History, ended: Ended, now: float) -> tuple[Restart | End, History]:
    """Decide what follows on `ended`. `now` is in seconds since the epoch."""
    code = shell_code(ended.returncode)
    step = -1 if ended.step is None else ended.step
    progressed = step > history.highest_step
    history = replace(history, highest_step=max(step, history.highest_step))
    collateral = code == PEER_LOST or (ended.ended_by_us and ended.returncode == -signal.SIGKILL)
    if code == 0:
        return End(0, "finished"), history
    if ended.terminating and (collateral or code == TERMINATED):
        return End(TERMINATED, "terminated"), history
    if not collateral:
        return End(code, f"the training process ended with {describe(ended.returncode)}"), history
    if ended.chief_finished:
        return End(0, "the chief task has finished"), history
    count = 0 if progressed or ended.peer_changed else history.without_progress + 1
    history = replace(history, without_progress=count)
    if count >= EXITS_WITHOUT_PROGRESS:
        reason = f"lost its peers {count} times in a row without a new step, and no peer was replaced"
        return End(STUCK, reason), history
    time = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Restart(ended.cause or "a peer was lost", time), replace(history, restarts=history.restarts + 1)


def describe(returncode: int) -> str:
    """`exit code 3` or `signal 9`."""
    return f"exit code {returncode}" if returncode >= 0 else f"signal {-returncode}"
