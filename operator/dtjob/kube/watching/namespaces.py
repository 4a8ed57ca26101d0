# SPDX-License-Identifier: Apache-2.0
"""Which of the named namespaces are watched: those that the API server lets us list.

A namespace that is deleted takes the operator's role in it along. Its watches are stopped as soon as a resync finds
that, and begun again when it answers.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence

from dtjob.controller.cluster import ClusterError
from dtjob.kube.watching.informer import Informer, resync

LOOK_EVERY_SECONDS = 5.0
"""How often a refused namespace is listed: one call each, as its first is refused. A resync comes every few minutes."""

logger = logging.getLogger(__name__)


class Watched:
    """The namespaces, none standing for the whole cluster. `changed` is set whenever others are to be watched."""

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

    def note(self, refused: Mapping[str, str]) -> None:
        """Take in what a resync found; each change is logged once."""
        lost, back = refused.keys() - self.refused, self.refused - refused.keys()
        for name in sorted(lost):
            logger.warning("namespace %s is left alone until it answers again: %s", name, refused[name])
        for name in sorted(back):
            logger.info("namespace %s answers again", name)
        self.refused = frozenset(refused)
        if lost or back:
            self.changed.set()


async def look_for_refused(informers: Sequence[Informer], watched: Watched) -> None:
    """List the refused namespaces for ever, so that one that answers is watched again: its role was made again, say."""
    while True:
        await asyncio.sleep(LOOK_EVERY_SECONDS)
        with contextlib.suppress(ClusterError):  # all are refused yet
            if watched.refused:
                watched.note(await resync(informers, without=watched.namespaces))
