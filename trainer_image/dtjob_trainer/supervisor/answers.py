# SPDX-License-Identifier: Apache-2.0
"""Decides what to do after an answer of the rendezvous. Pure: does no I/O (supervisor.py does it)."""

from dataclasses import dataclass, replace

from dtjob_trainer.rendezvous.messages import Answer, Phase, Registration
from dtjob_trainer.supervisor.restart import History

NOTICE_SECONDS = 0.1
"""When a generation is over, a process that trains has this time to notice it before it is killed.

Most processes notice within 0.02 s. A process that waits for a peer which noticed before needs its own heartbeat for
that, about 9 s. In a group of three nearly each restart has such a process, so each restart takes this time."""


@dataclass(frozen=True)
class Incarnation:
    """What a supervisor knows of its training process. While there is none, of the last one."""

    number: int = 0
    """How many training processes there were before it in this container."""
    phase: Phase = "waiting"
    """What the supervisor tells the rendezvous."""
    ended: bool = False
    generation_over: bool = False
    """The rendezvous has said that the generation is over: the process must start again in place."""
    ended_by_us: bool = False
    """The supervisor killed it, because its generation was over or the grace period ended."""
    preempted: tuple[str, ...] = ()
    """The peers whose preemption it was told about."""
    cause: str = ""
    """Which peer was lost, if that is already known."""


@dataclass(frozen=True)
class Show:
    """Show `message` in the status."""

    message: str


@dataclass(frozen=True)
class Go:
    """Let the training process start TensorFlow."""

    generation: int


@dataclass(frozen=True)
class GiveUp:
    """The generation of the training process is over. Kill it after `patience` seconds, unless it still saves."""

    generation: int
    cause: str
    patience: float


@dataclass(frozen=True)
class Kill:
    """Kill the training process."""


@dataclass(frozen=True)
class TellOfPreemption:
    """Tell the training process that `peer` is about to leave."""

    peer: str


@dataclass(frozen=True)
class EndStalled:
    """Training has stalled because of `straggler`, and this container ends. `how` says how the straggler is behind."""

    straggler: str
    how: str


@dataclass(frozen=True)
class StayNoLonger:
    """A task that stays without a training process trains again because of `cause`. If that is None, it ends."""

    cause: str | None


Action = Show | Go | GiveUp | Kill | TellOfPreemption | EndStalled | StayNoLonger


def on_answer(
    history: History, now: Incarnation, asked: Registration, answer: Answer, *, terminating: bool, starting: bool
) -> tuple[tuple[Action, ...], History, Incarnation]:
    """What to do after the `answer` to the registration `asked`, and what the supervisor knows from then on.

    - terminating: this supervisor was told to end.
    - starting: the training process waits, or starts TensorFlow. It has nothing to save yet, and would wait for a lost
      peer.
    """
    if answer.kind == "done":
        history = replace(history, chief_finished=True)
    if asked.incarnation != now.number:
        return (), history, now
    if now.ended:
        causes = {"done": None, "restart": answer.message}
        return (StayNoLonger(causes[answer.kind]),) if answer.kind in causes else (), history, now
    actions: tuple[Action, ...] = ()
    match answer.kind:
        case "wait" | "continue" | "refused":
            actions = (Show(answer.message),)
        case "go" if now.phase == "waiting" and not terminating:
            history, now = _after_go(history, answer), replace(now, phase="running")
            actions = (Go(answer.generation),)
        case "restart" if now.phase == "running" and not now.generation_over:
            now = replace(now, generation_over=True, cause=now.cause or answer.message)
            actions = (GiveUp(asked.generation, answer.message, 0.0 if starting else NOTICE_SECONDS),)
        case "stalled" if now.phase in ("running", "serving") and not (now.generation_over or terminating):
            actions = (EndStalled(answer.straggler, answer.message),)
        case "done" if now.phase == "waiting":
            actions = (Kill(),)
    news = tuple(peer for peer in answer.preempted if peer not in now.preempted)
    if news and now.phase == "running":
        now = replace(now, preempted=now.preempted + news, cause=f"{news[-1]} was told to end")
        actions += tuple(map(TellOfPreemption, news))
    return actions, history, now


def _after_go(history: History, answer: Answer) -> History:
    """A go says who was replaced since the last go. So the cause of the last restart is known now."""
    changed, cause = bool(answer.changed), answer.message
    if history.chief and answer.chief != history.chief:
        changed, cause = True, "the chief task was lost"
    history = replace(history, chief=answer.chief, generation=answer.generation)
    if changed:
        history = replace(history, without_progress=0)  # the exits before had a reason
    if changed and cause and history.last_restart:
        history = replace(history, last_restart=replace(history.last_restart, cause=cause))
    return history
