"""What follows on an answer of the rendezvous? Pure, does no I/O (supervisor.py does it)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dtjob_trainer.rendezvous.messages import Answer, Phase, Registration
from dtjob_trainer.supervisor.restart import History, peers_changed

NOTICE_SECONDS = 0.5
"""For which a process that trains may notice by itself that its generation is over, before it is killed. Most do within
0.1 s; one that waits for a peer which has noticed before it takes until its own heartbeat, about 9 s."""


@dataclass(frozen=True)
class Incarnation:
    """One training process, as its supervisor knows it; still the last one's while there is none."""

    number: int = 0
    """How many there were before it in this container."""
    phase: Phase = "waiting"
    """What the rendezvous is told."""
    ended: bool = False
    generation_over: bool = False
    """The rendezvous has said so: it must start again in place."""
    ended_by_us: bool = False
    """We killed it, because its generation was over or the grace period ended."""
    preempted: tuple[str, ...] = ()
    """The peers of whose preemption it was told."""
    cause: str = ""
    """Which peer was lost, where that is known already."""


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
    """The training process' generation is over: kill it after `patience` seconds, unless it still saves."""

    generation: int
    cause: str
    patience: float


@dataclass(frozen=True)
class Kill:
    """Kill the training process."""


@dataclass(frozen=True)
class TellOfPreemption:
    """Tell the training process that `peer` is about to go."""

    peer: str


@dataclass(frozen=True)
class EndStalled:
    """Training has stalled over `straggler`, and it is this container that ends; `how` says how that is behind."""

    straggler: str
    how: str


@dataclass(frozen=True)
class StayNoLonger:
    """A task that stays without a training process trains again because of `cause`, or ends where that is None."""

    cause: str | None


Action = Show | Go | GiveUp | Kill | TellOfPreemption | EndStalled | StayNoLonger


def on_answer(
    history: History, now: Incarnation, asked: Registration, answer: Answer, *, terminating: bool, starting: bool
) -> tuple[tuple[Action, ...], History, Incarnation]:
    """What to do on the `answer` to what was `asked`, and what to know from then on.

    - terminating: this supervisor was told to end.
    - starting: the training process waits, or brings TensorFlow up: it would wait there for a lost peer, and has
      nothing to save yet.
    """
    if answer.kind == "done":
        history = replace(history, chief_finished=True)
    if asked.incarnation != now.number:
        return (), history, now
    if now.ended:
        return _of_one_that_ended(answer), history, now
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
        now = replace(now, preempted=now.preempted + news, cause=f"{news[-1]} was preempted")
        actions += tuple(map(TellOfPreemption, news))
    return actions, history, now


def _of_one_that_ended(answer: Answer) -> tuple[Action, ...]:
    match answer.kind:
        case "done":
            return (StayNoLonger(None),)
        case "restart":
            return (StayNoLonger(answer.message),)
    return ()


def _after_go(history: History, answer: Answer) -> History:
    """A go tells who was replaced since the last one: now the last restart's cause is known."""
    changed, cause = bool(answer.changed), answer.message
    if history.chief and answer.chief != history.chief:
        changed, cause = True, "the chief task was lost"
    history = replace(history, chief=answer.chief, generation=answer.generation)
    if changed:
        history = peers_changed(history)
    if changed and cause and history.last_restart:
        history = replace(history, last_restart=replace(history.last_restart, cause=cause))
    return history
