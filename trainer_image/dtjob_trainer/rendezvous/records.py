# SPDX-License-Identifier: Apache-2.0
"""What the rendezvous knows about its members and about the running generation, and words for messages about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtjob_trainer.rendezvous.messages import Registration


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

NAMES_IN_A_MESSAGE = 3
"""How many tasks a message names. It counts the rest."""


def name_some(names: Sequence[str], count: int | None = None) -> str:
    """`a, b, c and 4 more`: the first names, and how many more there are of `count` (None: of `names`)."""
    rest = (len(names) if count is None else count) - NAMES_IN_A_MESSAGE
    return ", ".join(names[:NAMES_IN_A_MESSAGE]) + (f" and {rest} more" if rest > 0 else "")


def is_ps(task: str) -> bool:
    """Whether this is a ps. Training ends with it, because its variables are lost."""
    return task.startswith("ps-")


def cause_of(lost: Sequence[str], preempted: Sequence[str], crashed: Mapping[str, str] | None = None) -> str:
    """Why a generation ended, such as `worker-1 was lost`. `crashed`: task to the signal that ended its process."""
    gone = [task for task in lost if task not in preempted]
    killed: dict[str, list[str]] = {}
    for task, signal in (crashed or {}).items():
        if task not in lost:
            killed.setdefault(f"killed ({signal})", []).append(task)
    parts = [(names, how) for names, how in ((preempted, "told to end"), (gone, "lost")) if names]
    parts += [(names, how) for how, names in killed.items()]
    return ", ".join(f"{name_some(names)} {'was' if len(names) == 1 else 'were'} {how}" for names, how in parts)
