# SPDX-License-Identifier: Apache-2.0
"""Lease: what one candidate concludes from a coordination.k8s.io Lease. It does no I/O, and each time is an argument.

As in client-go, nobody compares two machines' clocks. A standby takes a lease over only after it has seen it unchanged
for its whole duration, on its own clock. The leader stops after two thirds of that. It counts from the moment that it
*sent* its last successful write. So there are never two leaders while no clock runs 1.5 times as fast as another,
however far apart they are set.
"""

import math
import secrets
import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dtjob.kube.calls.kinds import KINDS
from dtjob.objects.manifest import Manifest

KIND = "Lease"
API_VERSION = KINDS[KIND][0]


@dataclass(frozen=True)
class Election:
    """Which lease to hold, and as whom. `seconds`: how long a leader that died keeps it."""

    namespace: str
    name: str
    seconds: int
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}_{secrets.token_hex(4)}")
    """The host's name, which in a pod is the pod's, and some chance: a restarted container is another candidate."""


class Candidate:
    """One process that wants to lead. `now` is always its own monotonic clock, in seconds; `wall` only informs people.

    lease = …GET…                          # None: there is none
    if wish := candidate.wish(lease, now, wall):
        sent = now                         # before the call, not after it
        …POST or PUT wish, against its resourceVersion…
        candidate.wrote(sent)
    """

    def __init__(self, election: Election) -> None:
        self.election = election
        self.leads_until = -math.inf
        self._seen: dict[str, Any] | None = None
        self._changed_at = -math.inf

    @property
    def retry_seconds(self) -> float:
        """How often to look."""
        return self.election.seconds * 2 / 15

    @property
    def renew_within_seconds(self) -> float:
        """How long a leader goes on without a renewal."""
        return self.election.seconds * 2 / 3

    def leads(self, now: float) -> bool:
        """Whether this candidate may act."""
        return now < self.leads_until

    def wish(self, lease: Manifest | None, now: float, wall: datetime) -> Manifest | None:
        """The lease to write, None if it is another's. Learns from what it is shown; writing is not leading yet."""
        if lease is not None and lease.get("spec") != self._seen:
            self._seen, self._changed_at = dict(lease.get("spec") or {}), now
        seen = self._seen or {}
        holder = seen.get("holderIdentity")
        ours = holder == self.election.identity
        if not ours:
            self.leads_until = -math.inf
            # A lease that somebody deleted still counts, for its holder may not know yet.
            if holder and now < self._changed_at + float(seen.get("leaseDurationSeconds") or 0):
                return None
        return self._held(lease, ours, wall)

    def wrote(self, sent_at: float) -> None:
        """Note that the API server took a wish that was sent at this time."""
        self.leads_until = sent_at + self.renew_within_seconds

    def released(self, lease: Manifest | None) -> Manifest | None:
        """The lease to write so that another may lead at once, None if it is not ours. Leads no more from here."""
        self.leads_until = -math.inf
        if lease is None or (lease.get("spec") or {}).get("holderIdentity") != self.election.identity:
            return None
        return {**lease, "spec": {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}}

    def _held(self, lease: Manifest | None, ours: bool, wall: datetime) -> Manifest:
        mine, time = self.election, wall.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = dict((lease or {}).get("spec") or {})
        if not ours or "acquireTime" not in spec:
            spec["acquireTime"] = time
            spec["leaseTransitions"] = spec.get("leaseTransitions", -1) + 1
        spec |= {"holderIdentity": mine.identity, "leaseDurationSeconds": mine.seconds, "renewTime": time}
        metadata = (lease or {}).get("metadata") or {"name": mine.name, "namespace": mine.namespace}
        return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}
