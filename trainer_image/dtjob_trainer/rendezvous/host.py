# SPDX-License-Identifier: Apache-2.0
"""The rendezvous at the chief task's supervisor. rendezvous.py decides; this file does the I/O around it.

Answers are held back until there is news, so that `go` reaches all tasks at once. Meanwhile names are looked up.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Mapping
from dataclasses import replace

from dtjob_trainer.contract.task import Task, host_of
from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.rendezvous.rendezvous import Rendezvous, hold_seconds
from dtjob_trainer.rendezvous.stalls import Stalls

LOOK_UP_AGAIN_SECONDS = 0.5
"""Pause between two look-ups of a name that did not resolve to the address that registered."""


class RendezvousHost:
    """Answers registrations, from the network and from this supervisor itself. Lives in one event loop."""

    def __init__(
        self, rendezvous: Rendezvous, hosts: Mapping[str, str], supervisor: str = "", attempt: int = 0
    ) -> None:
        """`hosts`: task to `host:port`, as in the cluster file. `supervisor`: the id of this process. `attempt`: the
        present attempt at the chief task."""
        self.rendezvous, self._stalls, self._supervisor, self._attempt = rendezvous, Stalls(), supervisor, attempt
        self._hosts = {task: host_of(address) for task, address in hosts.items()}
        self._hold = hold_seconds(len(hosts))
        self._seen_revision = rendezvous.revision
        self._news = asyncio.Event()
        self._look_ups: dict[str, asyncio.Task[None]] = {}
        self._held = 0
        self._nobody_waits = asyncio.Event()

    async def answer(self, registration: Registration, address: str | None) -> Answer:
        """Answer `registration`, which came from `address` (None: from this process). Waits until there is news."""
        answer = await self._answer(registration, address)
        return replace(answer, chief=self._supervisor, chief_attempt=self._attempt)

    async def _answer(self, registration: Registration, address: str | None) -> Answer:
        now = time.monotonic()
        answer = self.rendezvous.register(registration, address, now)
        if self._stalls.look(registration, lambda: self.rendezvous.heard(now), now):
            self.rendezvous.revision += 1
        self._after_change()
        if registration.task not in self._look_ups and self._to_check(registration.task):
            self._look_ups[registration.task] = asyncio.create_task(self._look_up(registration.task))
        if answer.kind not in ("wait", "continue"):
            self._note_who_waits()
            return answer
        if self._stalls.named(registration):
            return self._with_straggler(answer, registration)
        self._held += 1
        self._nobody_waits.clear()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), self._hold)
        except asyncio.CancelledError:
            self.rendezvous.disconnected(registration)
            raise
        finally:
            self._held -= 1
            self._note_who_waits()
        answer = self.rendezvous.answer(registration, time.monotonic())
        self._note_who_waits()
        return self._with_straggler(answer, registration)

    def _with_straggler(self, answer: Answer, registration: Registration) -> Answer:
        """The answer. If this supervisor must end its container because of a stall, the answer says so."""
        named = self._stalls.named(registration)
        if named is None or answer.kind != "continue":
            return answer
        return replace(answer, kind="stalled", message=named.how, straggler=named.task)

    async def finish(self, seconds: float) -> None:
        """Tell all that training is done. Returns when the whole group and all who wait know, or after `seconds`."""
        self.rendezvous.finish()
        self._after_change()
        self._note_who_waits()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._nobody_waits.wait(), seconds)
        await asyncio.sleep(0.01)  # the loop sends the last answers in its next turns

    def _note_who_waits(self) -> None:
        if not self._held and self.rendezvous.all_know():
            self._nobody_waits.set()

    def _after_change(self) -> None:
        if self.rendezvous.revision != self._seen_revision:
            self._seen_revision = self.rendezvous.revision
            self._news.set()
            self._news = asyncio.Event()

    def _to_check(self, task: str) -> bool:
        return task in self._hosts and bool(self.rendezvous.addresses_to_check(task, time.monotonic()))

    async def _look_up(self, task: str) -> None:
        """Look the task's name up until it resolves to the address from which the task registered."""
        host = self._hosts[task]
        while True:
            try:
                self.rendezvous.name_resolved(task, host, await look_up(host), time.monotonic())
            except (OSError, UnicodeError) as error:
                self.rendezvous.name_failed(task, f"its name {host} does not resolve: {error}")
            self._after_change()
            if not self._to_check(task):
                break
            await asyncio.sleep(LOOK_UP_AGAIN_SECONDS)
        del self._look_ups[task]


async def look_up(host: str) -> list[str]:
    """The addresses to which `host` resolves. Raises OSError or UnicodeError if there are none."""
    # In a thread of its own, so that a slow name server does not block the event loop.
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return sorted({str(entry[4][0]) for entry in found})


def rendezvous_of(task: Task, supervisor: str) -> RendezvousHost:
    """The rendezvous that the chief task `task` hosts. `supervisor` is the id of this supervisor process."""
    hosts: dict[str, str] = {}
    for member in task.members:
        role, _, index = member.rpartition("-")
        hosts[member] = task.cluster[role][int(index)]
    group = (task.id,) if task.traits.serving_roles else task.members
    servers = tuple(member for member in task.members if member not in group)
    rendezvous = Rendezvous(task.uid, task.cluster_hash, chief=task.id, group=group, servers=servers)
    return RendezvousHost(rendezvous, hosts, supervisor, task.attempt)
