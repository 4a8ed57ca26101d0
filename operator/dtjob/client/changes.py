# SPDX-License-Identifier: Apache-2.0
"""One object as it changes: read first, then watched, for as long as somebody asks."""

import time
from collections.abc import Iterator

from dtjob.client.cluster import WATCH_SECONDS, Cluster
from dtjob.client.connection import Object
from dtjob.client.errors import ApiError, NotFound, Unreachable

_EXPIRED = 410
_RETRY_SECONDS = 1.0


def changes(cluster: Cluster, kind: str, name: str, deadline: float | None = None) -> Iterator[Object | None]:
    """The object now and after each change, None once it is deleted. Ends at the deadline (time.monotonic).

    Raises NotFound if there is none at the start. A connection that breaks is made again.
    """
    found: Object | None = cluster.get(kind, name)
    while found is not None and not _over(deadline):
        yield found
        version = str(found["metadata"]["resourceVersion"])
        try:
            for change, object_ in cluster.watch(
                kind, version, fields=f"metadata.name={name}", seconds=_seconds_until(deadline)
            ):
                if change == "DELETED":
                    yield None
                    return
                yield object_
                version = str(object_["metadata"]["resourceVersion"])
        except Unreachable:
            if _over(deadline):
                return
            time.sleep(_RETRY_SECONDS)
        except ApiError as error:
            if error.code != _EXPIRED:
                raise
        try:
            found = cluster.get(kind, name)
        except NotFound:
            yield None
            return
        except Unreachable:
            continue


def _over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _seconds_until(deadline: float | None) -> int:
    """How long a watch may take: a whole number of at least one."""
    return WATCH_SECONDS if deadline is None else max(1, min(WATCH_SECONDS, round(deadline - time.monotonic() + 0.5)))
