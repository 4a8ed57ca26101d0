# SPDX-License-Identifier: Apache-2.0
"""Which of the named namespaces are watched: those that the API server lets us list.

If a namespace is deleted, the operator's role in it is deleted too. Its watches stop as soon as a resync finds that.
They begin again when it answers.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence, Set

from dtjob.controller.cluster import ClusterError
from dtjob.controller.pace.backoff import Backoff
from dtjob.kube.watching.informer import Informer, resync

LOOK = Backoff(5.0, 30.0)
"""Before refused namespaces are listed again; a resync comes every few minutes. A namespace that refuses every kind
costs one call. If it refuses only the last kind, all of its pods are read each time."""

logger = logging.getLogger(__name__)


class Watched:
    """The named namespaces. If none is named, the whole cluster is watched. `changed` is set whenever other ones are to
    be watched."""

    def __init__(self, namespaces: Sequence[str]) -> None:
        self._all = tuple(namespaces)
        self.refused: frozenset[str] = frozenset()
        """Those that are left alone."""
        self.changed = asyncio.Event()

    @property
    def whole_cluster(self) -> bool:
        """Whether no namespace was named."""
        return not self._all

    @property
    def namespaces(self) -> list[str]:
        """Those to be watched now."""
        return [name for name in self._all if name not in self.refused]

    def note(self, refused: Mapping[str, str], asked: Set[str] | None = None) -> None:
        """Take in which of the namespaces that were asked are refused (None: all were asked). Each change is logged
        once."""
        not_asked = frozenset[str]() if asked is None else self.refused - asked
        lost, back = refused.keys() - self.refused, self.refused - refused.keys() - not_asked
        for name in sorted(lost):
            logger.warning("namespace %s is left alone until it answers again: %s", name, refused[name])
        for name in sorted(back):
            logger.info("namespace %s answers again", name)
        self.refused = not_asked | refused.keys()
        if lost or back:
            self.changed.set()


async def look_for_refused(informers: Sequence[Informer], watched: Watched) -> None:
    """List the refused namespaces for ever, so that one that answers is watched again: its role was made again, say."""
    looks, before = 0, watched.refused
    while True:
        looks = looks + 1 if watched.refused and watched.refused == before else 1
        before = watched.refused
        await asyncio.sleep(LOOK.after(looks))
        with contextlib.suppress(ClusterError):  # all are refused still, or the API server does not answer
            if asked := watched.refused:
                watched.note(await resync(informers, without=watched.namespaces), asked)
