"""Which of the named namespaces are watched: those that the API server lets us list.

kopf ends the process for a watch that is refused. A namespace that is deleted takes the operator's role in it along, so
its watches are stopped as soon as a resync finds that, and begun again when it answers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

# Private, but what `kopf.operator(insights=…)` takes: kopf 1.45 gives the type no public name.
from kopf._cogs.structs.references import Insights, NamespaceName

logger = logging.getLogger(__name__)


class Watched:
    """The namespaces, none standing for the whole cluster. `insights` is for `kopf.operator`, which starts and stops
    watches as its set of namespaces changes: with the right to watch namespaces kopf would change it itself."""

    def __init__(self, namespaces: Sequence[str]) -> None:
        self._all = tuple(namespaces)
        self._refused: frozenset[str] = frozenset()
        self.insights = Insights()

    @property
    def namespaces(self) -> list[str]:
        """Those to be watched now."""
        return [name for name in self._all if name not in self._refused]

    async def note(self, refused: Mapping[str, str]) -> None:
        """Take in what a resync found; each change is logged once."""
        lost, back = refused.keys() - self._refused, self._refused - refused.keys()
        for name in sorted(lost):
            logger.warning("namespace %s is left alone until it answers again: %s", name, refused[name])
        for name in sorted(back):
            logger.info("namespace %s answers again", name)
        self._refused = frozenset(refused)
        if not lost and not back:
            return
        async with self.insights.revised:
            self.insights.namespaces.difference_update(NamespaceName(name) for name in lost)
            self.insights.namespaces.update(NamespaceName(name) for name in back)
            self.insights.revised.notify_all()
