# SPDX-License-Identifier: Apache-2.0
"""What the rendezvous knows about its members and about the running generation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dtjob_trainer.rendezvous.messages import Registration
from dtjob_trainer.rendezvous.words import cause_of, is_ps


@dataclass
class Member:
    """What is known about one member."""

    registration: Registration
    address: str | None
    heard_at: float
    current: bool = True
    """Whether its registration may still be true. It is not after the member's own `go`.

    A server's is not once the chief waits again: the end of the server may have ended the chief's generation."""


@dataclass
class Round:
    """One generation: the training processes that got their go together."""

    generation: int
    processes: dict[str, tuple[int, str, int]]
    lives: dict[str, tuple[int, str]]
    changed: tuple[str, ...]
    over: bool = False
    cause: str = ""
    preempted: list[str] = field(default_factory=list)
    crashed: dict[str, str] = field(default_factory=dict)
    """Tasks whose training process a signal ended and that start again in their containers, with the signal's name."""

    def note_crash(self, task: str, signal: str, lives: Mapping[str, tuple[int, str]]) -> bool:
        """Note that `task` starts again in place after `signal`. `lives` are the present lives of all tasks.

        Returns whether this is the first known reason for the end of this generation. The generation may be over
        already, if a peer reported that first.
        """
        # Servers are not looked at: the loss of a worker ends no generation.
        lost = any(lives[one] != self.lives[one] for one in self.processes)
        first = not (self.crashed or self.preempted or lost)
        self.crashed[task] = signal
        return first

    @classmethod
    def after(
        cls,
        before: "Round | None",
        generation: int,
        processes: dict[str, tuple[int, str, int]],
        lives: dict[str, tuple[int, str]],
    ) -> "Round":
        """The generation after `before` (None: the first generation), with the reason for it."""
        if before is None:
            return cls(generation, processes, lives, ())
        changed = tuple(task for task, life in lives.items() if before.lives[task] != life)
        # The loss of a ParameterServer worker ends no generation. If a ps changed too, the ps is the reason.
        cause = cause_of(list(filter(is_ps, changed)) or changed, before.preempted, before.crashed) or before.cause
        told = (*changed, *(task for task in before.crashed if task not in changed))
        return cls(generation, processes, lives, told, cause=cause)


@dataclass(frozen=True)
class Crashes:
    """Restarts in place of training processes that a signal had ended."""

    count: int = 0
    """How many since this supervisor began. In a group: one for all crashes in one generation, and none if a peer was
    lost by then."""
    task: str = ""
    """The task of the last crash."""
    signal: str = ""
    """The name of the signal that ended its training process."""
    step: int | None = None
    """The last step that it had reported."""

    def and_one(self, task: str, signal: str, step: int | None) -> "Crashes":
        """These crashes and one more."""
        return Crashes(self.count + 1, task, signal, step)

    def to_json(self) -> dict[str, Any]:
        """The block `crashes` of /status."""
        told = {"count": self.count, "task": self.task, "signal": self.signal}
        return told if self.step is None else {**told, "step": self.step}


NO_CRASHES = Crashes()
"""No crash so far."""
