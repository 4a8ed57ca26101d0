"""Claims: whose word about a task is believed. Pure: takes `now`, does no I/O (host.py looks names up).

A registration says of itself which task and which attempt it is, and anybody who reaches the port can say so. What
nobody else can have is the address to which the task's host name leads: that pod is the one which the job's Service
selects. So a registration from another address than the one that plays the task now is a claim, and changes nothing
(however high an attempt it names) until the task's name leads to where it came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dtjob_trainer.rendezvous.addresses import name_problem, plain
from dtjob_trainer.rendezvous.messages import Registration

MOST_CLAIMS = 4
"""Addresses that claim one task at a time; more are those of somebody who makes them up."""


@dataclass
class _Name:
    """What is known of one task's host name."""

    resolved: frozenset[str] = frozenset()
    """Addresses to which it led when it was looked up last."""
    ever: frozenset[str] = frozenset()
    """Addresses to which it ever led: of several name servers some lag behind."""
    problem: str | None = None
    """Why it was none of those that were looked for; of the one that plays the task."""
    claim_problem: str = ""
    """The same of the newest claim."""
    claims: dict[str, tuple[Registration, float]] = field(default_factory=dict)
    """By address, what was said last from there and when."""


class Claims:
    """The host names of one job's tasks, and who claims to be them. An address is None for this very process."""

    def __init__(self) -> None:
        self._names: dict[str, _Name] = {}

    def leads_to(self, task: str, address: str | None) -> bool:
        """Whether the task's name is known to lead to `address`."""
        return address is None or plain(address) in self._name(task).resolved

    def led_to(self, task: str, address: str | None) -> bool:
        """Whether the task's name has ever led to `address`."""
        return address is None or plain(address) in self._name(task).ever

    def problem(self, task: str) -> str:
        """Why that is not known, in words."""
        return self._name(task).problem or "looking up its name"

    def claim(self, registration: Registration, address: str, now: float) -> None:
        """Remember what was said from an address that the task's name is not known to lead to."""
        claims = self._name(registration.task).claims
        claims.pop(plain(address), None)
        while len(claims) >= MOST_CLAIMS:
            claims.pop(next(iter(claims)))
        claims[plain(address)] = (registration, now)

    def withdraw(self, registration: Registration) -> None:
        """Forget this registration where it is such a claim: whoever made it has gone."""
        claims = self._name(registration.task).claims
        for address in [one for one, (said, _) in claims.items() if said == registration]:
            del claims[address]

    def claim_problem(self, task: str) -> str:
        """Why the newest claim of the task does not count yet, in words; empty where there is none."""
        name = self._name(task)
        return name.claim_problem if name.claims else ""

    def claimed(self, registration: Registration) -> bool:
        """Whether this registration is such a claim."""
        return any(one == registration for one, _ in self._name(registration.task).claims.values())

    def looked_for(self, task: str, address: str | None, since: float) -> list[str]:
        """Addresses of which it is not known that the task's name leads there: that of who plays it, and claims made
        after `since`."""
        name = self._name(task)
        for old in [one for one, (_, heard_at) in name.claims.items() if heard_at < since]:
            del name.claims[old]
        own = [] if address is None or self.leads_to(task, address) else [address]
        return [*own, *name.claims]

    def resolved(
        self, task: str, host: str, addresses: Sequence[str], address: str | None
    ) -> list[tuple[Registration, str, float]]:
        """Take in a look-up of the task's name; `address` is that of who plays it. Gives the claims that are true."""
        name = self._name(task)
        name.resolved = frozenset(map(plain, addresses))
        name.ever |= name.resolved
        name.problem = name_problem(host, list(addresses), address) if address is not None else None
        true = [one for one in name.claims if one in name.resolved]
        for one in name.claims:
            name.claim_problem = name_problem(host, list(addresses), one) or ""
        return [(registration, one, heard_at) for one in true for registration, heard_at in (name.claims.pop(one),)]

    def failed(self, task: str, problem: str) -> None:
        """Take in that the task's name could not be looked up. What it led to before stays believed."""
        name = self._name(task)
        name.problem = name.claim_problem = problem

    def _name(self, task: str) -> _Name:
        return self._names.setdefault(task, _Name())
