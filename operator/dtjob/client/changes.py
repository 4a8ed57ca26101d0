# SPDX-License-Identifier: Apache-2.0
"""One object as it changes: read first, then watched, for as long as somebody asks."""

import time
from collections.abc import Iterator

from dtjob.client.cluster import WATCH_SECONDS, Cluster
from dtjob.client.connection import Object
from dtjob.client.errors import TEMPORARY, NotFound, Refused, Unavailable
from dtjob.client.patience import Patience

TOO_OLD = 410
"""The API server no longer knows what came after a version."""


def changes(cluster: Cluster, kind: str, name: str, deadline: float | None = None) -> Iterator[Object | None]:
    """The object now and after each change, None once it is deleted. Ends at the deadline (time.monotonic).

    Raises NotFound if there is none at the start. A connection that breaks is made again. An API server that cannot
    serve is asked again, and the user is told after a while.
    """
    trying = Patience(cluster.connection.outage, deadline)
    is_known = False
    while not _over(deadline):
        try:
            for found in _until_the_watch_ends(cluster, kind, name, deadline):
                is_known = True
                yield found
                if found is None:
                    return
            trying.answered()
        except NotFound:
            if not is_known:
                raise
            yield None
            return
        except TEMPORARY as error:
            # An address that has never answered may be wrong.
            if not is_known and not isinstance(error, Unavailable):
                raise
            if not trying.wait(error):
                return


def _until_the_watch_ends(cluster: Cluster, kind: str, name: str, deadline: float | None) -> Iterator[Object | None]:
    """The object, and each change while one watch lasts. Raises ClientError."""
    found = cluster.get(kind, name, seconds=0)
    yield found
    version, fields = str(found["metadata"]["resourceVersion"]), f"metadata.name={name}"
    try:
        for change, object_ in cluster.watch(kind, version, fields=fields, seconds=_seconds_until(deadline)):
            yield None if change == "DELETED" else object_
    except Refused as error:
        if error.code != TOO_OLD:
            raise


def _over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _seconds_until(deadline: float | None) -> int:
    """How long a watch may take: a whole number of at least one."""
    return WATCH_SECONDS if deadline is None else max(1, min(WATCH_SECONDS, round(deadline - time.monotonic() + 0.5)))
