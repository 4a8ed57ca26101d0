"""Which of the named namespaces are watched: those that the API server lets us list.

A namespace that is deleted takes the operator's role in it along. Its watches are stopped as soon as a resync finds
that, and begun again when it answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

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
