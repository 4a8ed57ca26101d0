# SPDX-License-Identifier: Apache-2.0
"""The messages between supervisors: a registration, and the answer to it (POST /rendezvous)."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Phase = Literal["waiting", "running", "serving", "preempted"]
PHASES: tuple[Phase, ...] = get_args(Phase)
LARGEST, LONGEST = 2**31 - 1, 256
"""The largest number and the longest text in a registration."""
KEYS = {"cluster_hash": "clusterHash", "kind": "answer", "chief_attempt": "chiefAttempt"}
"""The keys of JSON that differ from the names of fields."""
Kind = Literal["wait", "go", "continue", "restart", "stalled", "done", "refused"]


@dataclass(frozen=True)
class Registration:
    """What a supervisor reports about its task. `(attempt, supervisor, incarnation)` names one training process."""

    uid: str
    cluster_hash: str
    task: str
    attempt: int
    supervisor: str
    """A random id of the supervisor process. It differs for a new process at the same attempt."""
    incarnation: int
    phase: Phase
    generation: int = 0
    """The last generation for which this supervisor got `go`. 0: none."""
    step: int | None = None
    stalled: bool = False
    """No new step came for the stall timeout, by this supervisor's own clock."""
    stopped: bool = False
    """The training process is stopped (SIGSTOP)."""
    doing: str = ""
    """What the training process does, if that lasts (contract/doing.py)."""
    crash: str = ""
    """If a signal ended the training process before this one: the name of the signal."""

    @property
    def life(self) -> tuple[int, str]:
        """The supervisor that sent this. Another life means that the pod or the supervisor process was replaced."""
        return (self.attempt, self.supervisor)

    @property
    def process(self) -> tuple[int, str, int]:
        """The training process that this is about."""
        return (self.attempt, self.supervisor, self.incarnation)

    def to_json(self) -> dict[str, Any]:
        """The body of POST /rendezvous."""
        return _to_json(self)

    @classmethod
    def from_json(cls, body: object) -> "Registration":
        """Read the body of POST /rendezvous. Raises ValueError, which names the field that is wrong."""
        if not isinstance(body, dict):
            raise ValueError("the body must be a JSON object")
        values: dict[str, Any] = {}
        for field in fields(cls):
            name = KEYS.get(field.name, field.name)
            kind = field.type if isinstance(field.type, type) else str
            values[field.name] = value = body.get(name)
            if field.name == "step":
                values["step"] = value if isinstance(value, int) else None
            elif type(value) is not kind:
                raise ValueError(f"{name} must be of type {kind.__name__}")
            elif isinstance(value, int) and not 0 <= value <= LARGEST:
                raise ValueError(f"{name} must be from 0 to {LARGEST}")
            elif isinstance(value, str) and len(value) > LONGEST:
                raise ValueError(f"{name} must have at most {LONGEST} characters")
        if values["phase"] not in PHASES:
            raise ValueError(f"phase must be one of {', '.join(PHASES)}")
        return cls(**values)


@dataclass(frozen=True)
class Answer:
    """The answer of the chief task's supervisor to a registration."""

    kind: Kind
    generation: int = 0
    message: str = ""
    """With `wait`: what is missing. With `refused`: why. With `restart` and `go`: the loss that led to it, if known.
    With `stalled`: how the straggler is behind."""
    changed: tuple[str, ...] = ()
    """With `go`: tasks that have another supervisor than in the generation before, and tasks that crashed in it."""
    preempted: tuple[str, ...] = ()
    """Tasks of the running generation that got SIGTERM and still run."""
    chief: str = ""
    """The id of the supervisor that answers. Another id than before means that the chief task was replaced."""
    straggler: str = ""
    """With `stalled`: the task that the others wait for. The task that gets the answer ends its container: the
    straggler itself, or another task if the straggler is silent."""
    chief_attempt: int = 0
    """The attempt at the chief task that answers."""

    def to_json(self) -> dict[str, Any]:
        """The answer's body."""
        return _to_json(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Answer":
        """Read an answer's body. Raises KeyError, TypeError or ValueError if it is not an answer."""
        if not isinstance(body, Mapping) or not all(type(body[name]) is int for name in ("generation", "chiefAttempt")):
            raise TypeError(f"not an answer of a rendezvous: {str(body)[:80]}")
        values = {field.name: body[KEYS.get(field.name, field.name)] for field in fields(cls)}
        return cls(**{**values, "changed": tuple(values["changed"]), "preempted": tuple(values["preempted"])})


def _to_json(message: Registration | Answer) -> dict[str, Any]:
    return {KEYS.get(name, name): value for name, value in vars(message).items()}
