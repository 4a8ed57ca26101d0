# SPDX-License-Identifier: Apache-2.0
"""Claims: decides which registrations of a task count. Pure: takes `now`, does no I/O (host.py resolves names).

A registration names its task and attempt, and anyone who reaches the port can send one. But only one pod has the
address to which the task's host name resolves: the pod that the job's Service selects. So a registration from another
address than the one that has the task now is only a claim. It changes nothing, however high an attempt it names, until
the task's host name resolves to its address.
"""

import contextlib
import ipaddress
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from dtjob_trainer.rendezvous.messages import Registration

_SIDECAR = ", as by way of a service mesh's sidecar: keep that out of the job's pods"
"""Istio's sidecar connects to its pod's ports from 127.0.0.6, and from 127.0.0.1 to ports that a Service names."""
MOST_CLAIMS = 4
"""How many addresses may claim one task at a time. More of them would be made up."""


@dataclass
class _Name:
    """What is known about one task's host name."""

    resolved: frozenset[str] = frozenset()
    """The addresses to which it resolved when it was last looked up."""
    ever: frozenset[str] = frozenset()
    """All addresses to which it has ever resolved. Some name servers lag behind others."""
    problem: str | None = None
    """Why it does not resolve to the address that has the task now."""
    claim_problem: str = ""
    """Why it does not resolve to the address of the newest claim."""
    claims: dict[str, tuple[Registration, float]] = field(default_factory=dict)
    """By address: the last registration from there, and its time."""


class Claims:
    """The host names of one job's tasks, and claims to them. An address of None means this process itself."""

    def __init__(self) -> None:
        self._names: dict[str, _Name] = defaultdict(_Name)

    def leads_to(self, task: str, address: str | None) -> bool:
        """Whether the task's name is known to resolve to `address`."""
        return address is None or plain(address) in self._names[task].resolved

    def led_to(self, task: str, address: str | None) -> bool:
        """Whether the task's name has ever resolved to `address`."""
        return address is None or plain(address) in self._names[task].ever

    def problem(self, task: str) -> str:
        """Why the task's name is not known to resolve to its address, in words."""
        return self._names[task].problem or "looking up its name"

    def claim(self, registration: Registration, address: str, now: float) -> None:
        """Remember a registration from an address to which the task's name is not known to resolve."""
        claims = self._names[registration.task].claims
        claims.pop(plain(address), None)
        while len(claims) >= MOST_CLAIMS:
            claims.pop(next(iter(claims)))
        claims[plain(address)] = (registration, now)

    def withdraw(self, registration: Registration) -> None:
        """Forget this registration if it is a claim: its sender has disconnected."""
        claims = self._names[registration.task].claims
        for address in [one for one, (said, _) in claims.items() if said == registration]:
            del claims[address]

    def claim_problem(self, task: str) -> str:
        """Why the newest claim to the task does not count yet, in words. Empty if there is no claim."""
        name = self._names[task]
        return name.claim_problem if name.claims else ""

    def claimed(self, registration: Registration) -> bool:
        """Whether this registration is a claim."""
        return any(one == registration for one, _ in self._names[registration.task].claims.values())

    def looked_for(self, task: str, address: str | None, since: float) -> list[str]:
        """The addresses that still need a look-up: the one that has the task, and those of claims made after `since`.

        The task's name is not known to resolve to any of them.
        """
        name = self._names[task]
        for old in [one for one, (_, heard_at) in name.claims.items() if heard_at < since]:
            del name.claims[old]
        own = [] if address is None or self.leads_to(task, address) else [address]
        return [*own, *name.claims]

    def resolved(
        self, task: str, host: str, addresses: Sequence[str], address: str | None
    ) -> list[tuple[Registration, str, float]]:
        """Note a look-up of the task's name. `address` has the task now. Returns the claims that are confirmed."""
        name = self._names[task]
        name.resolved = frozenset(map(plain, addresses))
        name.ever |= name.resolved
        name.problem = name_problem(host, list(addresses), address) if address is not None else None
        true = [one for one in name.claims if one in name.resolved]
        for one in name.claims:
            name.claim_problem = name_problem(host, list(addresses), one) or ""
        return [(registration, one, heard_at) for one in true for registration, heard_at in (name.claims.pop(one),)]

    def failed(self, task: str, problem: str) -> None:
        """Note that the task's name could not be looked up. The addresses known before stay valid."""
        name = self._names[task]
        name.problem = name.claim_problem = problem


def name_problem(host: str, addresses: list[str], registered_from: str) -> str | None:
    """Why a host name with `addresses` does not fit a task that registered from `registered_from`. None if it fits."""
    if plain(registered_from) in map(plain, addresses):
        return None
    problem = f"its name {host} resolves to {', '.join(addresses)}, but it registered from {registered_from}"
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(plain(registered_from)).is_loopback:
            return f"{problem}{_SIDECAR}"
    return problem


def plain(text: str) -> str:
    """The address in its canonical form. An IPv4 address mapped into IPv6 becomes that IPv4 address."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(text.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(address)
    return text
