# SPDX-License-Identifier: Apache-2.0
"""Which of the named namespaces are watched: those that the API server lets us list.

A namespace that is deleted takes the operator's role in it along. Its watches are stopped as soon as a resync finds
that, and begun again when it answers.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from dtjob.api.job import KIND
from dtjob.controller.cluster import ClusterError
from dtjob.controller.store import LISTED_KINDS
from dtjob.kube.watching.informer import Reads
from dtjob.objects import labels

LOOK_EVERY_SECONDS = 5.0
"""How often a refused namespace is asked for: one call each, as its first is refused. A resync comes every few
minutes."""

logger = logging.getLogger(__name__)


class Watched:
    """The namespaces, none standing for the whole cluster. `changed` is set whenever others are to be watched."""

    def __init__(self, namespaces: Sequence[str]) -> None:
        self._all = tuple(namespaces)
        self._refused: frozenset[str] = frozenset()
        self.changed = asyncio.Event()

    @property
    def whole_cluster(self) -> bool:
        """Whether no namespace was named."""
        return not self._all

    @property
    def namespaces(self) -> list[str]:
        """Those to be watched now."""
        return [name for name in self._all if name not in self._refused]

    @property
    def refused(self) -> list[str]:
        """Those that are left alone."""
        return sorted(self._refused)

    def note(self, refused: Mapping[str, str]) -> None:
        """Take in what a resync found; each change is logged once."""
        lost, back = refused.keys() - self._refused, self._refused - refused.keys()
        for name in sorted(lost):
            logger.warning("namespace %s is left alone until it answers again: %s", name, refused[name])
        for name in sorted(back):
            logger.info("namespace %s answers again", name)
        self._refused = frozenset(refused)
        if lost or back:
            self.changed.set()


async def look_for_refused(kube: Reads, watched: Watched, answers: asyncio.Event) -> None:
    """Ask for ever whether a refused namespace may be listed by now: its role was made again, say. Sets `answers`, upon
    which a resync is to come."""
    while True:
        await asyncio.sleep(LOOK_EVERY_SECONDS)
        for name in watched.refused:
            try:
                for kind in (*LISTED_KINDS, KIND):  # a resync would be refused for each of them
                    async for _ in kube.pages(kind, name, "" if kind == KIND else labels.JOB_NAME):
                        break
                answers.set()
            except ClusterError as error:
                logger.debug("namespace %s: %s", name, error)
