"""What supervisors say to each other: a registration there, an answer back (POST /rendezvous)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Phase = Literal["waiting", "running", "serving", "preempted"]
PHASES: tuple[Phase, ...] = get_args(Phase)
LARGEST, LONGEST = 2**31 - 1, 256
"""Of a registration's numbers and texts."""
Kind = Literal["wait", "go", "continue", "restart", "stalled", "done", "refused"]


@dataclass(frozen=True)
class Registration:
    """What one supervisor says about its task. `(attempt, supervisor, incarnation)` names one training process."""

    uid: str
    cluster_hash: str
    task: str
    attempt: int
    supervisor: str
    """A random id of the supervisor process: it tells a new one from the old one at the same attempt."""
    incarnation: int
    phase: Phase
    generation: int = 0
    """The last generation that this supervisor was given `go` for; 0 for none."""
    step: int | None = None
    stalled: bool = False
    """No new step came for too long, by this supervisor's own clock."""
    stopped: bool = False
    """The training process is stopped (SIGSTOP)."""
    doing: str = ""
    """What the training process is in, where that lasts (contract/doing.py)."""
    crash: str = ""
    """The name of the signal over which this training process was started in the place of the one before it."""

    @property
    def life(self) -> tuple[int, str]:
        """The supervisor behind this registration; another life means that the pod or process was replaced."""
        return (self.attempt, self.supervisor)

    @property
    def process(self) -> tuple[int, str, int]:
        """The training process behind this registration."""
        return (self.attempt, self.supervisor, self.incarnation)

    def to_json(self) -> dict[str, Any]:
        """The body of POST /rendezvous."""
        return {
            "uid": self.uid, "clusterHash": self.cluster_hash, "task": self.task, "attempt": self.attempt,
            "supervisor": self.supervisor, "incarnation": self.incarnation, "phase": self.phase,
            "generation": self.generation, "step": self.step, "stalled": self.stalled, "stopped": self.stopped,
            "doing": self.doing, "crash": self.crash,
        }  # fmt: skip

    @classmethod
    def from_json(cls, body: object) -> Registration:
        """Read the body of POST /rendezvous. Raises ValueError that names the field which is wrong."""
        if not isinstance(body, dict):
            raise ValueError("the body must be a JSON object")
        wanted: tuple[tuple[str, type], ...] = (
            ("uid", str), ("clusterHash", str), ("task", str), ("attempt", int), ("supervisor", str),
            ("incarnation", int), ("phase", str), ("generation", int), ("stalled", bool), ("stopped", bool),
            ("doing", str), ("crash", str),
        )  # fmt: skip
        for name, kind in wanted:
            value = body.get(name)
            if type(value) is not kind:
                raise ValueError(f"{name} must be of type {kind.__name__}")
            if isinstance(value, int) and not 0 <= value <= LARGEST:
                raise ValueError(f"{name} must be from 0 to {LARGEST}")
            if isinstance(value, str) and len(value) > LONGEST:
                raise ValueError(f"{name} must have at most {LONGEST} characters")
        if body["phase"] not in PHASES:
            raise ValueError(f"phase must be one of {', '.join(PHASES)}")
        step = body.get("step")
        return cls(
            body["uid"], body["clusterHash"], body["task"], body["attempt"], body["supervisor"], body["incarnation"],
            body["phase"], body["generation"], step if isinstance(step, int) else None,
            body["stalled"], body["stopped"], body["doing"], body["crash"],
        )  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What the chief task's supervisor says to a registration."""

    kind: Kind
    generation: int = 0
    message: str = ""
    """With `wait`: what is missing; `refused`: why; `restart` and `go`: which loss it follows, as far as known;
    `stalled`: how the straggler is behind."""
    changed: tuple[str, ...] = ()
    """With `go`: tasks that another supervisor plays than in the generation before, and those that crashed in it."""
    preempted: tuple[str, ...] = ()
    """Tasks of the running generation that were told to leave (SIGTERM) and still run."""
    chief: str = ""
    """The id of the answering supervisor: another one than before means that the chief task was replaced."""
    straggler: str = ""
    """With `stalled`: the task that the others wait for, which is to end its container; or where that is silent, the
    task that is to do so in its place."""
    chief_attempt: int = 0
    """The attempt at the chief task that answers."""

    def to_json(self) -> dict[str, Any]:
        """The answer's body."""
        return {
            "answer": self.kind, "generation": self.generation, "message": self.message,
            "changed": list(self.changed), "preempted": list(self.preempted), "chief": self.chief,
            "straggler": self.straggler, "chiefAttempt": self.chief_attempt,
        }  # fmt: skip

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Answer:
        """Read an answer's body. Raises KeyError, TypeError or ValueError for something that is none."""
        if not isinstance(body, Mapping) or not all(type(body[name]) is int for name in ("generation", "chiefAttempt")):
            raise TypeError(f"not an answer of a rendezvous: {str(body)[:80]}")
        return cls(
            body["answer"], body["generation"], body["message"], tuple(body["changed"]), tuple(body["preempted"]),
            body["chief"], body["straggler"], body["chiefAttempt"],
        )  # fmt: skip
