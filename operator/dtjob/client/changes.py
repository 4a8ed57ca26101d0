# SPDX-License-Identifier: Apache-2.0
"""Objects as they change: read first, then watched, for as long as somebody asks."""

import math
import threading
import time
from collections.abc import Callable, Iterator

from dtjob.client.cluster import Cluster
from dtjob.client.connection import Object
from dtjob.client.errors import TEMPORARY, ClientError, Ended, NotFound, TooOld, Unavailable
from dtjob.client.patience import Patience

_AGAIN_SECONDS = 0.2
"""Before a watch that ended is continued."""
_LEAST_SECONDS = 5.0
"""How long the first look may take if there is no time: a wait of 0 seconds asks for the present state."""


def changes(cluster: Cluster, kind: str, name: str, until: float = math.inf) -> Iterator[Object | None]:
    """The object now and after each change, None once it is deleted. Ends at that moment (time.monotonic).

    Raises NotFound if there is none at the start. A connection that breaks is made again. An API server that cannot
    serve is asked again, and the user is told after a while.
    """
    trying = Patience(cluster.connection.outage, until)
    is_known, now = False, time.monotonic()
    first = until if until > now else now + _LEAST_SECONDS
    while time.monotonic() < (until if is_known else first):
        try:
            found = cluster.get(kind, name, seconds=0, until=until if is_known else first)
            is_known = True
            yield found
            fields = f"metadata.name={name}"
            for change, object_ in cluster.watch(kind, _version(found), fields=fields, until=until):
                yield None if change == "DELETED" else object_
                if change == "DELETED":
                    return
            trying.answered()
        except NotFound:
            if not is_known:
                raise
            yield None
            return
        except TEMPORARY as error:
            # An address that has never answered may be wrong.
            if not is_known and not isinstance(error, Unavailable) and time.monotonic() < first:
                raise
            if not trying.wait(error):
                return
        except TooOld:
            continue


def follow(
    found: Iterator[list[tuple[str, Object]]],
    take: Callable[[list[tuple[str, Object]]], object],
    lost: Callable[[ClientError], object],
) -> None:
    """Give each of the batches `found` to `take`, until this client ends its calls. `lost` hears of another error."""
    try:
        for batch in found:
            take(batch)
    except Ended:
        return
    except ClientError as error:
        lost(error)


def batches(
    cluster: Cluster,
    kind: str,
    selector: str = "",
    *,
    everywhere: bool = False,
    stopping: threading.Event | None = None,
) -> Iterator[list[tuple[str, Object]]]:
    """The objects with these labels, and then what happens to them: ADDED, MODIFIED or DELETED, and the object.

    The first batch has all that is there. What passes is waited for, and told. Raises ClientError. Ends after
    `stopping` is set.
    """
    stopping = stopping or threading.Event()
    trying = Patience(cluster.connection.outage, sleep=stopping.wait)
    there: dict[str, Object] = {}
    version = ""
    while not stopping.is_set():
        try:
            if not version:
                found, version = cluster.listed(kind, selector, everywhere=everywhere)
                before, there = there, {one["metadata"]["uid"]: one for one in found}
                gone = [("DELETED", one) for uid, one in before.items() if uid not in there]
                yield [*_new(before, there), *gone]
            for change, object_ in cluster.watch(kind, version, selector, everywhere=everywhere):
                version = _version(object_)
                there[object_["metadata"]["uid"]] = object_
                if change == "DELETED":
                    del there[object_["metadata"]["uid"]]
                yield [(change, object_)]
            trying.answered()
            stopping.wait(_AGAIN_SECONDS)
        except TEMPORARY as error:
            trying.wait(error)
        except TooOld:
            version = ""


def _new(before: dict[str, Object], now: dict[str, Object]) -> Iterator[tuple[str, Object]]:
    for uid, one in now.items():
        if uid not in before:
            yield "ADDED", one
        elif _version(one) != _version(before[uid]):
            yield "MODIFIED", one


def _version(object_: Object) -> str:
    return str(object_["metadata"].get("resourceVersion", ""))
