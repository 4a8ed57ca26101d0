# SPDX-License-Identifier: Apache-2.0
"""Decides when a group of tasks may start TensorFlow together. Pure: takes `now`, does no I/O (host.py does it).

TensorFlow 2.21 crashes if a peer's name does not resolve yet. It trains with a stale peer of another cluster. And it
cannot form a broken group again in the same process. So the chief task's supervisor lets all wait until all are here.
Then it says `go` to all at once: a new *generation*. It says `restart` as soon as a member of the running generation
has come back with a new training process.
"""

import heapq
from collections.abc import Sequence

from dtjob_trainer.rendezvous.claims import Claims, plain
from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.rendezvous.records import NAMES_IN_A_MESSAGE, Crashes, Member, Round, cause_of, is_ps, name_some
from dtjob_trainer.rendezvous.stalls import SILENT_SECONDS, Heard


def hold_seconds(members: int) -> float:
    """How long the chief's supervisor may hold an answer back. So it gets about 200 requests a second at most."""
    return max(1.0, members / 200)


class Rendezvous:
    """The state of one job's rendezvous, at the chief task's supervisor.

    `group` starts together and ends together (MultiWorkerMirrored: all tasks; ParameterServer: the chief alone).
    `servers` (ParameterServer: ps and workers) start by themselves. They must serve before the group may start.
    """

    def __init__(
        self,
        uid: str,
        cluster_hash: str,
        *,
        chief: str,
        group: Sequence[str],
        servers: Sequence[str] = (),
    ) -> None:
        self.uid, self.cluster_hash, self.chief = uid, cluster_hash, chief
        self.group, self.servers = tuple(group), tuple(servers)
        self._group, self._servers = frozenset(group), frozenset(servers)
        self.lease = 5 * hold_seconds(len(group) + len(servers))
        """A registration that was not renewed for so many seconds no longer counts."""
        self.revision = 0
        """Grows whenever an answer that is held back may have changed."""
        self.generation = 0
        self.crashes = Crashes()
        """The crashes of all members that were known to this rendezvous before they crashed."""
        self._order = {task: number for number, task in enumerate(self.group + self.servers)}
        self._members: dict[str, Member] = {}
        self._missing = dict.fromkeys(self._order, "")  # task → why it is not ready
        self._swept_at = 0.0
        self._round: Round | None = None
        self._claims = Claims()
        self._finished = False
        self._unaware: set[str] = set()  # tasks of the group that do not know yet that the chief task has finished

    def register(self, registration: Registration, address: str | None, now: float) -> Answer:
        """Note `registration`, sent from `address` (None: by this supervisor itself), and answer it."""
        refusal = self._refusal(registration)
        if refusal:
            return Answer("refused", message=refusal)
        if not self._believes(registration.task, address):
            assert address is not None
            self._claims.claim(registration, address, now)
            return self.answer(registration, now)
        if outdated := self._outdated(registration):
            return Answer("refused", message=outdated)
        self._take(registration, address, now)
        self._start_round_if_ready(now)
        answer = self.answer(registration, now)
        if answer.kind == "go":
            self._forget(registration.task)
        return answer

    def answer(self, registration: Registration, now: float) -> Answer:
        """The present answer to a registration that `register` has noted."""
        current, task = self._round, registration.task
        if self._finished:
            if not self._claims.claimed(registration):
                self._unaware.discard(task)
            return Answer("done")
        if task in self._servers:
            return Answer("continue")
        in_round = current is not None and not current.over and current.processes[task] == registration.process
        if registration.phase == "waiting":
            if current is not None and in_round:
                return Answer("go", current.generation, current.cause, changed=current.changed)
            return Answer("wait", message=self._what_is_missing(now))
        if current is not None and in_round:
            return Answer(
                "continue", current.generation, preempted=tuple(each for each in current.preempted if each != task)
            )
        cause = current.cause if current is not None and current.cause else f"{self.chief} was lost"
        return Answer("restart", registration.generation, cause)

    def disconnected(self, registration: Registration) -> None:
        """The connection of `registration` broke while it waited for its answer. It no longer counts as present."""
        self._claims.withdraw(registration)
        member = self._members.get(registration.task)
        if member and member.registration == registration and registration.phase == "waiting":
            self._forget(registration.task)

    def finish(self) -> None:
        """The chief's training process has ended with success. All tasks get `done` from now on."""
        self._finished = True
        self._unaware = set(self.group) - {self.chief}
        self.revision += 1

    def all_know(self) -> bool:
        """Whether all others of the group got `done`, so that none still waits for the chief task."""
        return not self._unaware

    def heard(self, now: float) -> list[Heard]:
        """What is known about every member, in the order of the cluster. A member that was never heard is silent."""
        silent_since = now - max(self.lease, SILENT_SECONDS)
        return [
            Heard(task, one.registration, one.heard_at < silent_since, one.heard_at) if one else Heard(task, None, True)
            for task in self._order
            for one in (self._members.get(task),)
        ]

    def silent(self, seconds: float, now: float) -> dict[str, int]:
        """Tasks that were heard before but not for `seconds`, with their attempts."""
        members = self._members.items()
        return {task: one.registration.attempt for task, one in members if now - one.heard_at >= seconds}

    def unheard(self, seconds: float, now: float) -> dict[str, str]:
        """The tasks that the group waits for and that were not heard for `seconds`, or whose names do not lead to them.

        With what is known of the reason, in the order of the cluster.
        """
        known = ((task, self._members.get(task)) for task in sorted(self._missing, key=self._order.__getitem__))
        return {
            task: self._missing[task]
            for task, member in known
            if member is None or now - member.heard_at >= seconds or self._is_lost_by_name(task, member)
        }

    def _is_lost_by_name(self, task: str, member: Member) -> bool:
        phase = "serving" if task in self._servers else "waiting"
        ready = member.current and member.registration.phase == phase
        return ready and not self._claims.leads_to(task, member.address)

    def addresses_to_check(self, task: str, now: float) -> list[str]:
        """The addresses from which `task` registered and to which its host name is not known to resolve yet."""
        member = self._members.get(task)
        addresses = self._claims.looked_for(task, member.address if member else None, now - self.lease)
        self._update(task)
        return addresses

    def name_resolved(self, task: str, host: str, addresses: Sequence[str], now: float) -> None:
        """The result of a look-up: the name of `task` resolves to `addresses`. That confirms a claim from there."""
        member = self._members.get(task)
        for registration, address, heard_at in self._claims.resolved(
            task, host, addresses, member.address if member else None
        ):
            if self._outdated(registration) is None:
                self._take(registration, address, heard_at)
        self._update(task)
        self._start_round_if_ready(now)

    def name_failed(self, task: str, problem: str) -> None:
        """The result of a look-up: the host name of `task` does not resolve."""
        self._claims.failed(task, problem)
        self._update(task)

    def missing(self, now: float, most: int | None = None) -> list[str]:
        """The tasks that the group waits for, `most` at most, some with a reason. Empty if it could start."""
        if now - self._swept_at >= 1:
            self._sweep(now)
        count = len(self._missing) if most is None else most
        first = heapq.nsmallest(count, self._missing, key=self._order.__getitem__)
        return [f"{task} ({self._missing[task]})" if self._missing[task] else task for task in first]

    def _update(self, task: str) -> None:
        """Check again whether `task` is ready."""
        reason = self._why_not_ready(task)
        if reason is None:
            self._missing.pop(task, None)
        else:
            self._missing[task] = reason

    def _why_not_ready(self, task: str) -> str | None:
        member = self._members.get(task)
        claim = self._claims.claim_problem(task)
        if member is None or not member.current:
            return claim
        serves = task in self._servers
        if member.registration.phase != ("serving" if serves else "waiting"):
            return claim or ("not serving yet" if serves else "still running")
        return None if self._claims.leads_to(task, member.address) else self._claims.problem(task)

    def _forget(self, task: str) -> None:
        """Do not count the last registration of `task`. It must register again."""
        if task in self._members:
            self._members[task].current = False
            self._update(task)

    def _sweep(self, now: float) -> None:
        """Forget registrations that were not renewed within the lease."""
        self._swept_at = now
        for task, member in self._members.items():
            if now - member.heard_at > self.lease and member.current:
                self._forget(task)

    def _what_is_missing(self, now: float) -> str:
        missing = self.missing(now, NAMES_IN_A_MESSAGE)
        if not missing:
            return "waiting for the others to hear that they may start"
        return f"waiting for {name_some(missing, len(self._missing))}"

    def _refusal(self, r: Registration) -> str | None:
        # Says little, because the sender may be a stranger.
        if r.uid != self.uid:
            return f"{r.task} is of another job than the chief task ({self.chief}), perhaps an earlier one of its name"
        if r.cluster_hash != self.cluster_hash:
            return f"{r.task} has another cluster spec than the chief task ({self.chief})"
        if r.task not in self._order:
            return f"{r.task} is not in the cluster: it has {name_some(list(self._order))}"
        return None

    def _believes(self, task: str, address: str | None) -> bool:
        """Whether a registration from `address` counts: the task has that address, or its name resolves to it."""
        member = self._members.get(task)
        if member is None or self._claims.leads_to(task, address):
            return True
        return member.address is not None and address is not None and plain(member.address) == plain(address)

    def _outdated(self, r: Registration) -> str | None:
        """Why a registration from an address that counts is older than what is known. None if it is not."""
        member = self._members.get(r.task)
        if member is None or not self._claims.led_to(r.task, member.address):
            return None
        known = member.registration
        if r.attempt < known.attempt:
            return f"attempt {r.attempt} of {r.task} was replaced by attempt {known.attempt}"
        if r.life == known.life and r.incarnation < known.incarnation:
            return f"incarnation {r.incarnation} of {r.task} was followed by incarnation {known.incarnation}"
        return None

    def _take(self, registration: Registration, address: str | None, now: float) -> None:
        """Make `registration` what is known about its task."""
        task, old = registration.task, self._members.get(registration.task)
        same_process = old is not None and old.registration.process == registration.process
        began_waiting = registration.phase == "waiting" and not same_process
        self._members[task] = Member(registration, address, now)
        self._update(task)
        if began_waiting and old is not None:
            self._notice_crash(old.registration, registration)
        self._notice_end_of_round(registration)
        if task in self._group and began_waiting:
            self._hear_servers_again()
        if registration.phase == "preempted" and (task in self._group or is_ps(task)):
            self._notice_preemption(task)

    def _notice_crash(self, old: Registration, new: Registration) -> None:
        if not new.crash or old.life != new.life or new.task not in self._group or self._round is None:
            return
        lives = {task: member.registration.life for task, member in self._members.items()}
        if self._round.note_crash(new.task, new.crash, lives):
            self.crashes = self.crashes.and_one(new.task, new.crash, new.step)

    def _notice_end_of_round(self, r: Registration) -> None:
        current = self._round
        if current is None or current.over or r.task not in self._group or current.processes[r.task] == r.process:
            return
        current.over = True
        self.revision += 1
        if current.crashed:
            current.cause = cause_of((), current.preempted, current.crashed)
        elif not current.preempted and current.lives[r.task] == r.life:
            current.cause = f"{r.task} lost a peer"  # the lost peer is known once it has come back
        else:
            current.cause = cause_of([] if current.preempted else [r.task], current.preempted)

    def _notice_preemption(self, task: str) -> None:
        if self._round is not None and not self._round.over and task not in self._round.preempted:
            self._round.preempted.append(task)
            self.revision += 1

    def _hear_servers_again(self) -> None:
        for task in self.servers:
            self._forget(task)
        if self.servers:
            self.revision += 1  # releases the held answers, so that every server that lives registers at once

    def _start_round_if_ready(self, now: float) -> None:
        before = self._round
        if self._finished or self._missing or (before is not None and not before.over):
            return
        self._sweep(now)
        if self._missing:
            return
        self.generation = (
            max(self.generation, *(self._members[task].registration.generation for task in self.group)) + 1
        )
        processes = {task: self._members[task].registration.process for task in self.group}
        lives = {task: self._members[task].registration.life for task in self.group + self.servers}
        self._round = Round.after(before, self.generation, processes, lives)
        for task in self.group:
            self._forget(task)
        self.revision += 1
