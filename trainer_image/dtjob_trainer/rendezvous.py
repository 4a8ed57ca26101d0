"""When may a group of tasks start TensorFlow together? Pure: takes `now`, does no I/O (rendezvous_host.py does it).

TensorFlow crashes on a peer whose name does not resolve yet, trains with a stale peer of another cluster, and can never
re-form a broken group in the same process (shared/tensorflow-facts.md). So the chief task's supervisor holds everybody
back until all are here, says `go` to all at once (a new *generation*), and says `restart` as soon as a member of the
running generation has come back with a new training process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Phase = Literal["waiting", "running", "serving", "preempted"]
Kind = Literal["wait", "go", "continue", "restart", "done", "refused"]

NAMES_IN_A_MESSAGE = 3
"""How many tasks a message names before it counts the rest."""


def hold_seconds(members: int) -> float:
    """How long the chief's supervisor may hold an answer back: about 200 requests a second reach it at most."""
    return max(1.0, members / 200)


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
            "generation": self.generation, "step": self.step,
        }  # fmt: skip

    @classmethod
    def from_json(cls, body: object) -> Registration:
        """Read the body of POST /rendezvous. Raises ValueError that names the field which is wrong."""
        if not isinstance(body, dict):
            raise ValueError("the body must be a JSON object")
        wanted: tuple[tuple[str, type], ...] = (
            ("uid", str), ("clusterHash", str), ("task", str), ("attempt", int), ("supervisor", str),
            ("incarnation", int), ("phase", str), ("generation", int),
        )  # fmt: skip
        for name, kind in wanted:
            if not isinstance(body.get(name), kind):
                raise ValueError(f"{name} must be of type {kind.__name__}, not {body.get(name)!r}")
        if body["phase"] not in ("waiting", "running", "serving", "preempted"):
            raise ValueError(f"phase must be waiting, running, serving or preempted, not {body['phase']!r}")
        step = body.get("step")
        return cls(
            body["uid"], body["clusterHash"], body["task"], body["attempt"], body["supervisor"], body["incarnation"],
            body["phase"], body["generation"], step if isinstance(step, int) else None,
        )  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What the chief task's supervisor says to a registration."""

    kind: Kind
    generation: int = 0
    message: str = ""
    """With `wait`: what is missing; `refused`: why; `restart` and `go`: which loss it follows, as far as known."""
    changed: tuple[str, ...] = ()
    """With `go`: tasks that another supervisor plays than in the generation before."""
    preempted: tuple[str, ...] = ()
    """Tasks of the running generation that were told to leave (SIGTERM) and still run."""
    chief: str = ""
    """The id of the answering supervisor: another one than before means that the chief task was replaced."""

    def to_json(self) -> dict[str, Any]:
        """The answer's body."""
        return {
            "answer": self.kind, "generation": self.generation, "message": self.message,
            "changed": list(self.changed), "preempted": list(self.preempted), "chief": self.chief,
        }  # fmt: skip

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Answer:
        """Read an answer's body. Raises KeyError or TypeError for something that is none."""
        return cls(
            body["answer"], int(body["generation"]), body["message"],
            tuple(body["changed"]), tuple(body["preempted"]), body["chief"],
        )  # fmt: skip


@dataclass
class _Member:
    registration: Registration
    address: str | None
    heard_at: float
    current: bool = True
    """Whether its registration may still be true: not after its own `go`, nor, for a server, once the chief waits anew
    (what ended the chief's generation may have been the end of that server)."""


@dataclass
class _Round:
    generation: int
    processes: dict[str, tuple[int, str, int]]
    lives: dict[str, tuple[int, str]]
    changed: tuple[str, ...]
    over: bool = False
    cause: str = ""
    preempted: list[str] = field(default_factory=list)


class Rendezvous:
    """The state of one job's rendezvous, at the chief task's supervisor.

    `group` starts together and ends together (MultiWorkerMirrored: all tasks; ParameterServer: the chief alone);
    `servers` must be serving before the group may start (ParameterServer: ps and workers), and start on their own.
    """

    def __init__(
        self,
        uid: str,
        cluster_hash: str,
        *,
        chief: str,
        supervisor: str,
        group: Sequence[str],
        servers: Sequence[str] = (),
    ) -> None:
        self.uid, self.cluster_hash, self.chief, self.supervisor = uid, cluster_hash, chief, supervisor
        self.group, self.servers = tuple(group), tuple(servers)
        self.lease = 5 * hold_seconds(len(group) + len(servers))
        """Seconds after which a registration that was not renewed no longer counts."""
        self.revision = 0
        """Grows whenever an answer that is being held back may have become another one."""
        self.generation = 0
        self._known = frozenset(self.group + self.servers)
        self._members: dict[str, _Member] = {}
        self._round: _Round | None = None
        self._name_checks: dict[str, tuple[str, str | None]] = {}  # task → address it was checked for, what is wrong
        self._finished = False

    def register(self, registration: Registration, address: str | None, now: float) -> Answer:
        """Take note of `registration`, sent from `address` (None: from this very supervisor), and answer it."""
        refusal = self._refusal(registration)
        if refusal:
            return self._answer("refused", message=refusal)
        task, old = registration.task, self._members.get(registration.task)
        same_process = old is not None and old.registration.process == registration.process
        began_waiting = registration.phase == "waiting" and not same_process
        self.generation = max(self.generation, registration.generation)
        self._members[task] = _Member(registration, address, now)
        self._notice_end_of_round(registration)
        if task in self.group and began_waiting:
            self._hear_servers_again()
        if registration.phase == "preempted" and (task in self.group or task.startswith("ps-")):
            self._notice_preemption(task)
        self._start_round_if_ready(now)
        answer = self.answer(registration, now)
        self._members[task].current = answer.kind != "go"
        return answer

    def answer(self, registration: Registration, now: float) -> Answer:
        """The answer to a registration that `register` has taken."""
        current, task = self._round, registration.task
        if self._finished:
            return self._answer("done")
        if task in self.servers:
            return self._answer("continue")
        in_round = current is not None and not current.over and current.processes[task] == registration.process
        if registration.phase == "waiting":
            if current is not None and in_round:
                return self._answer("go", current.generation, current.cause, changed=current.changed)
            return self._answer("wait", message=self._what_is_missing(now))
        if current is not None and in_round:
            return self._answer("continue", current.generation, preempted=[t for t in current.preempted if t != task])
        cause = current.cause if current is not None and current.cause else f"{self.chief} was lost"
        return self._answer("restart", registration.generation, cause)

    def disconnected(self, registration: Registration) -> None:
        """The connection broke over which `registration` was waiting for its answer: it no longer counts as present."""
        member = self._members.get(registration.task)
        if member and member.registration == registration and registration.phase == "waiting":
            del self._members[registration.task]

    def finish(self) -> None:
        """The chief's training process has ended with success: everybody hears `done` from now on."""
        self._finished = True
        self.revision += 1

    def address_to_check(self, task: str) -> str | None:
        """The address that `task` registered from, where its host name is not known to resolve to it yet; else None."""
        member = self._members.get(task)
        if member is None or member.address is None or self._name_checks.get(task) == (member.address, None):
            return None
        return member.address

    def name_checked(self, task: str, address: str, problem: str | None, now: float) -> None:
        """A look-up's outcome: the task's host name resolves to `address` (problem None), or what is wrong."""
        self._name_checks[task] = (address, problem)
        self._start_round_if_ready(now)

    def missing(self, now: float) -> list[str]:
        """What the group waits for: tasks, some with a reason in brackets; empty when it could start."""
        return list(self._missing(now))

    def _missing(self, now: float) -> Iterable[str]:
        for task in self.group + self.servers:
            member, wanted = self._members.get(task), "waiting" if task in self.group else "serving"
            if member is None or now - member.heard_at > self.lease:
                yield task
            elif member.registration.phase != wanted:
                yield f"{task} ({'still running' if wanted == 'waiting' else 'not serving yet'})"
            elif not member.current:
                yield task
            elif member.address is not None:
                checked = self._name_checks.get(task)
                if checked is None or checked[0] != member.address:
                    yield f"{task} (looking up its name)"
                elif checked[1]:
                    yield f"{task} ({checked[1]})"

    def _what_is_missing(self, now: float) -> str:
        missing = self.missing(now)
        return f"waiting for {name_some(missing)}" if missing else "waiting for the others to hear that they may start"

    def _refusal(self, r: Registration) -> str | None:
        if r.uid != self.uid:
            return f"{r.task} is of the job with uid {r.uid}; this is the rendezvous of the job with uid {self.uid}"
        if r.cluster_hash != self.cluster_hash:
            return f"{r.task} has cluster hash {r.cluster_hash}; the chief task ({self.chief}) has {self.cluster_hash}"
        if r.task not in self._known:
            return f"{r.task} is not in the cluster: it has {name_some(self.group + self.servers)}"
        member = self._members.get(r.task)
        if member is not None:
            known = member.registration
            if r.attempt < known.attempt:
                return f"attempt {r.attempt} of {r.task} was replaced by attempt {known.attempt}"
            if r.life == known.life and r.incarnation < known.incarnation:
                return f"incarnation {r.incarnation} of {r.task} was followed by incarnation {known.incarnation}"
        return None

    def _notice_end_of_round(self, r: Registration) -> None:
        current = self._round
        if current is None or current.over or r.task not in self.group or current.processes[r.task] == r.process:
            return
        current.over = True
        self.revision += 1
        if not current.preempted and current.lives[r.task] == r.life:
            current.cause = f"{r.task} lost a peer"  # the one that was lost is known when it has come back
        else:
            current.cause = _cause([] if current.preempted else [r.task], current.preempted)

    def _notice_preemption(self, task: str) -> None:
        if self._round is not None and not self._round.over and task not in self._round.preempted:
            self._round.preempted.append(task)
            self.revision += 1

    def _hear_servers_again(self) -> None:
        for task in self.servers:
            if task in self._members:
                self._members[task].current = False
        if self.servers:
            self.revision += 1  # releases the held answers, so that every living server speaks at once

    def _start_round_if_ready(self, now: float) -> None:
        before = self._round
        if self._finished or (before is not None and not before.over) or any(self._missing(now)):
            return
        self.generation += 1
        processes = {task: self._members[task].registration.process for task in self.group}
        lives = {task: self._members[task].registration.life for task in self.group + self.servers}
        changed = tuple(task for task, life in lives.items() if before is not None and before.lives[task] != life)
        self._round = _Round(self.generation, processes, lives, changed)
        for task in self.group:
            self._members[task].current = False
        if before is not None:
            # A dead ParameterServer worker comes back by itself; where a ps changed too, the ps is what broke training.
            lost = [task for task in changed if task.startswith("ps-")] or changed
            self._round.cause = _cause(lost, before.preempted) or before.cause
        self.revision += 1

    def _answer(
        self,
        kind: Kind,
        generation: int = 0,
        message: str = "",
        *,
        changed: tuple[str, ...] = (),
        preempted: Sequence[str] = (),
    ) -> Answer:
        return Answer(kind, generation, message, changed, tuple(preempted), self.supervisor)


def name_some(names: Sequence[str]) -> str:
    """`a, b, c and 4 more`."""
    rest = len(names) - NAMES_IN_A_MESSAGE
    return ", ".join(names[:NAMES_IN_A_MESSAGE]) + (f" and {rest} more" if rest > 0 else "")


def _cause(lost: Sequence[str], preempted: Sequence[str]) -> str:
    gone = [task for task in lost if task not in preempted]
    parts = [(names, how) for names, how in ((preempted, "preempted"), (gone, "lost")) if names]
    return ", ".join(f"{name_some(names)} {'was' if len(names) == 1 else 'were'} {how}" for names, how in parts)
