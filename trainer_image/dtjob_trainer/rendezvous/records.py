"""What the rendezvous keeps of its members and of the generation that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dtjob_trainer.rendezvous.messages import Registration
from dtjob_trainer.rendezvous.words import cause_of, is_ps


@dataclass
class Member:
    """What is known of one member."""

    registration: Registration
    address: str | None
    heard_at: float
    current: bool = True
    """Whether its registration may still be true: not after its own `go`, nor, for a server, once the chief waits anew
    (what ended the chief's generation may have been the end of that server)."""


@dataclass
class Round:
    """One generation: who was let go together."""

    generation: int
    processes: dict[str, tuple[int, str, int]]
    lives: dict[str, tuple[int, str]]
    changed: tuple[str, ...]
    over: bool = False
    cause: str = ""
    preempted: list[str] = field(default_factory=list)
    crashed: dict[str, str] = field(default_factory=dict)
    """Tasks whose training process a signal ended and that go on in their containers, with the signal's name."""

    def note_crash(self, task: str, signal: str, lives: Mapping[str, tuple[int, str]]) -> bool:
        """Note that `task` goes on after this signal; `lives` are those that tasks have now. Whether nothing was known
        before that has this generation end. It may be over already, by the word of a peer that was faster."""
        lost = any(lives[one] != self.lives[one] for one in self.processes)  # not servers: a worker's loss ends nothing
        first = not (self.crashed or self.preempted or lost)
        self.crashed[task] = signal
        return first

    @classmethod
    def after(
        cls,
        before: Round | None,
        generation: int,
        processes: dict[str, tuple[int, str, int]],
        lives: dict[str, tuple[int, str]],
    ) -> Round:
        """The generation that follows on `before` (None: the first), and why it does."""
        if before is None:
            return cls(generation, processes, lives, ())
        changed = tuple(task for task, life in lives.items() if before.lives[task] != life)
        # A dead ParameterServer worker ends nothing; where a ps changed too, the ps is what broke training.
        cause = cause_of(list(filter(is_ps, changed)) or changed, before.preempted, before.crashed) or before.cause
        told = (*changed, *(task for task in before.crashed if task not in changed))
        return cls(generation, processes, lives, told, cause=cause)


@dataclass(frozen=True)
class Crashes:
    """Restarts over training processes that a signal ended and that were started again in their containers."""

    count: int = 0
    """How many, since this supervisor began: of a group one for all that crashed in one generation, none where a peer
    was lost by then."""
    task: str = ""
    """The task of the last one."""
    signal: str = ""
    """The name of the signal that ended it."""
    step: int | None = None
    """The last step that it had told of."""

    def and_one(self, task: str, signal: str, step: int | None) -> Crashes:
        """One more of them."""
        return Crashes(self.count + 1, task, signal, step)

    def to_json(self) -> dict[str, Any]:
        """The block `crashes` of /status."""
        told = {"count": self.count, "task": self.task, "signal": self.signal}
        return told if self.step is None else {**told, "step": self.step}


NO_CRASHES = Crashes()
"""None so far."""
