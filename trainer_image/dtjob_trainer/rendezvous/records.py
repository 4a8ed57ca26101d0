"""What the rendezvous keeps of its members and of the generation that runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from dtjob_trainer.rendezvous.messages import Registration


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
