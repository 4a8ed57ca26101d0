# SPDX-License-Identifier: Apache-2.0
"""Leader election: of several operators, one works. `lease.py` decides. This file has the calls, the clock and the end.

Why not `kubernetes.aio.leaderelection` (37.0)? A refused connection is no ApiException and escapes its renew loop,
which leaves its work running without a lease. A call that hangs outlasts its renew deadline, which is checked between
calls only. It reads the wall clock, so setting the clock makes two leaders. It counts from the answer instead of from
the request. It writes local time as UTC. It never releases the lease.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from dtjob.controller.cluster import ClusterError
from dtjob.kube.calls.client import Kube
from dtjob.kube.election.lease import KIND, Candidate, Election
from dtjob.kube.endpoints.endpoint import Pulse

logger = logging.getLogger(__name__)


def begin_anew() -> None:
    """Start the same program in this process: its threads end and its connections close, so nothing of it acts again.

    To a kubelet the end of the process would be a crash. After five of them it waits for five minutes, and no operator
    works meanwhile, though the API server is there again.
    """
    logging.shutdown()
    try:
        os.execv(sys.executable, sys.orig_argv)
    finally:
        os._exit(1)


class Leader:
    """This process's part in an election. `lost` ends all that this program does, at once: it must not act any more."""

    def __init__(
        self, cluster: Kube, election: Election, pulse: Pulse, lost: Callable[[], object] = begin_anew
    ) -> None:
        self._cluster, self._election = cluster, election
        self._pulse = pulse
        self._lost = lost
        self._candidate = Candidate(election)
        self._described = f"lease {election.namespace}/{election.name}"
        self._logged: str | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None

    async def acquire(self) -> None:
        """Return as soon as this process leads; from then on it does so until `release`, or it begins anew."""
        while not self._candidate.leads(_now()):
            if not await self._try():
                await asyncio.sleep(self._candidate.retry_seconds)
        logger.info("leading as %s (%s)", self._election.identity, self._described)
        self._renewing = asyncio.create_task(self._renew_forever(), name="renew the lease")

    async def release(self) -> None:
        """Give the lease back, so that a standby leads at once. Best effort: a lease not given back expires."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        candidate = self._candidate
        try:
            async with asyncio.timeout(candidate.renew_within_seconds):
                lease = candidate.released(await self._cluster.get(KIND, self._election.namespace, self._election.name))
                if lease is not None:
                    await self._cluster.replace(lease)
                    logger.info("%s is released", self._described)
        except (ClusterError, TimeoutError) as error:
            logger.warning("%s was not released: %s", self._described, _said(error))
        if self._deadline is not None:
            self._deadline.cancel()

    async def _renew_forever(self) -> None:
        """Renew until it is lost. One call over a connection whose other end is gone must not cost the lease: there is
        a second try, over another one. A slow API server has most of the time for the first."""
        while True:
            await asyncio.sleep(self._candidate.retry_seconds)
            renewed = await self._try(self._candidate.renew_within_seconds / 2)
            if not renewed and self._candidate.leads(_now()):
                renewed = await self._try()
            if not renewed and not self._candidate.leads(_now()):
                self._lose(self._logged or "it ran out")

    async def _try(self, seconds: float | None = None) -> bool:
        """Look at the lease and write it where that is right; whether this was done. A call that hangs is given up
        after so many seconds."""
        candidate = self._candidate
        self._pulse.beat("leader election", within=60 + 4 * self._election.seconds)
        try:
            async with asyncio.timeout(seconds or candidate.renew_within_seconds):
                lease = await self._cluster.get(KIND, self._election.namespace, self._election.name)
                sent = _now()
                wish = candidate.wish(lease, sent, datetime.now(UTC))
                if wish is None:
                    self._log_once(
                        f"{self._described} is held by {(lease or {}).get('spec', {}).get('holderIdentity')}"
                    )
                    return False
                await (self._cluster.create(wish) if lease is None else self._cluster.replace(wish))
        except (ClusterError, TimeoutError) as error:
            self._log_once(f"{self._described} could not be taken: {_said(error)}")
            return False
        candidate.wrote(sent)
        self._logged = None
        if self._deadline is not None:
            self._deadline.cancel()
        # The program ends when the lease in hand runs out, whatever its tasks wait for then.
        why = f"not renewed for {candidate.renew_within_seconds:.1f} s"
        self._deadline = asyncio.get_running_loop().call_at(candidate.leads_until, self._lose, why)
        return True

    def _lose(self, why: str) -> None:
        logger.error("%s is lost: %s; beginning anew at once", self._described, why)
        self._lost()

    def _log_once(self, what: str) -> None:
        """Log what is new; a standby that waits for days says so once."""
        if what != self._logged:
            logger.info("%s", what)
            self._logged = what


def _now() -> float:
    return asyncio.get_running_loop().time()


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
