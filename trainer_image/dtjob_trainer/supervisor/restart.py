# SPDX-License-Identifier: Apache-2.0
"""Decides what happens after the training process has ended. Pure: takes `now`, does no I/O (supervisor.py does it).

- Exit 75 means that a peer was lost: the process starts again in this container.
- A signal has ended the process: that is a crash. The process starts again in this container if the job's rules leave
  the signal to the supervisor, if it had done steps, and if it had started from a newer checkpoint than the process
  that crashed before it here. As for maxRestartsWithoutProgress, only a newer checkpoint is progress. /status shows it.
- Exit 0 of a task that the chief task may still need is held back until the chief task has finished.
- Anything else ends the container, so that Kubernetes and the operator see it and count it.

The exit codes are those of contract.md.
"""

import signal
from dataclasses import dataclass, replace

from dtjob_trainer.contract import exit_codes, times
from dtjob_trainer.rendezvous.records import NO_CRASHES, Crashes

EXITS_WITHOUT_PROGRESS = 3
"""So many exits 75 in a row, without a new step and without a changed peer, end the container."""


@dataclass(frozen=True)
class Restart:
    """Start the training process again in this container."""

    cause: str
    time: str
    """RFC 3339, UTC."""


@dataclass(frozen=True)
class History:
    """What the supervisor remembers from one training process to the next."""

    without_progress: int = 0
    """Exits 75 in a row without a new step and without a changed peer."""
    highest_step: int = -1
    restarts: int = 0
    crashes: Crashes = NO_CRASHES
    """The restarts because of crashes of this task's own training processes."""
    crash: str = ""
    """If the training process before this one crashed: the name of the signal, and whether memory was used up."""
    crashed_from: int = -1
    """The step from which the last process that crashed had started."""
    last_restart: Restart | None = None
    generation: int = 0
    """The last generation for which a training process got its go."""
    chief: str = ""
    """The id of the chief task's supervisor at the last go. Another id means that the chief task was replaced."""
    chief_finished: bool = False
    """The chief task has said that training is done."""


@dataclass(frozen=True)
class Ended:
    """How a training process ended, and what its supervisor knew at that moment."""

    returncode: int
    """Exit code, or minus the signal's number, as in `subprocess`."""
    task: str = ""
    """The task it belonged to, such as `worker-1`."""
    restart_signals: frozenset[int] = frozenset()
    """The signals after which it may be started again in this container."""
    step: int | None = None
    """The last step that it, or a process before it, reported."""
    trained_from: int | None = None
    """The step from which it had started, if it was training and had done steps of its own."""
    terminating: bool = False
    """This supervisor was told to end (SIGTERM)."""
    ended_by_us: bool = False
    """The supervisor killed it: its generation was over or the grace period ended. Its signal 9 counts as exit 75."""
    chief_may_need_it: bool = False
    """The task is a member of a group that starts and ends together, and not its chief task."""
    peer_changed: bool = False
    """A peer is known to have been replaced or preempted since this process got its go."""
    cause: str = ""
    """Which peer was lost, if that is already known."""
    stalled: str = ""
    """The supervisor ended it because training had stalled: the reason, for the log. Empty: it had not stalled."""
    out_of_memory: bool = False
    """The kernel has killed a process of this container for want of memory since it started."""


@dataclass(frozen=True)
class Stay:
    """Keep the container until the chief task has finished.

    If the chief task fails in its last save or later, the whole group must train again from the last checkpoint.
    """


@dataclass(frozen=True)
class End:
    """End the container with `code`."""

    code: int
    reason: str


def after_exit(history: History, ended: Ended, now: float) -> tuple[Restart | Stay | End, History]:
    """Decide what to do after `ended`. `now` is in seconds since the epoch."""
    code = exit_codes.of_process(ended.returncode)
    step = -1 if ended.step is None else ended.step
    progressed = step > history.highest_step
    history = replace(history, highest_step=max(step, history.highest_step), crash="")
    collateral = code == exit_codes.PEER_LOST or (ended.ended_by_us and ended.returncode == -signal.SIGKILL)
    collateral |= bool(ended.stalled)  # it may have been told to end meanwhile
    if code == exit_codes.FINISHED:
        stays = ended.chief_may_need_it and not (history.chief_finished or ended.terminating)
        return Stay() if stays else End(exit_codes.FINISHED, "finished"), history
    if ended.terminating and (collateral or code == exit_codes.TERMINATED):
        return End(exit_codes.TERMINATED, "terminated"), history
    if ended.stalled or not collateral:
        return _after_own_end(history, ended, now)
    if history.chief_finished:
        return End(exit_codes.FINISHED, "the chief task has finished"), history
    count = 0 if progressed or ended.peer_changed else history.without_progress + 1
    history = replace(history, without_progress=count)
    if count >= EXITS_WITHOUT_PROGRESS:
        reason = f"lost its peers {count} times in a row without a new step, and no peer was replaced"
        return End(exit_codes.STUCK, reason), history
    return restart(history, ended.cause, now)


def _after_own_end(history: History, ended: Ended, now: float) -> tuple[Restart | End, History]:
    if ended.stalled:
        return End(exit_codes.STALLED, ended.stalled), history
    if ended.trained_from is None or not _is_crash(history, ended):
        number = ended.returncode
        how = f"exit code {number}" if number >= 0 else f"signal {-number}"
        return End(exit_codes.of_process(number), f"the training process ended with {how}"), history
    name = signal.Signals(-ended.returncode).name
    if ended.out_of_memory and -ended.returncode == signal.SIGKILL:
        name = f"{name}, out of memory"
    begun, history = restart(history, f"{ended.task} was killed ({name})", now)
    crashes = history.crashes.and_one(ended.task, name, ended.step)
    return begun, replace(history, crash=name, crashed_from=ended.trained_from, crashes=crashes, without_progress=0)


def _is_crash(history: History, ended: Ended) -> bool:
    """Whether the process starts again in this container after its signal.

    If it crashes before its first step, or from the same checkpoint as the process before it, a restart here does not
    help: it would crash in a new pod as well, or it needs another node. The job's limit of restarts is for that.
    """
    named = -ended.returncode in ended.restart_signals and not ended.terminating
    return named and ended.trained_from is not None and ended.trained_from > history.crashed_from


def restart(history: History, cause: str, now: float) -> tuple[Restart, History]:
    """Start again because of `cause`, if that is known. `now` is in seconds since the epoch."""
    begun = Restart(cause or "a peer was lost", times.to_the_second(now))
    return begun, replace(history, restarts=history.restarts + 1, last_restart=begun)
