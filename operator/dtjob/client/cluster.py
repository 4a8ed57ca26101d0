# SPDX-License-Identifier: Apache-2.0
"""The objects of one namespace: read, made, changed, watched, and the logs of pods."""

import builtins
import contextlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from dtjob.api import kinds
from dtjob.client.connection import MERGE_PATCH, Connection, Object, Query
from dtjob.client.errors import BadName, Conflict, NotFound, NotReached, Refused, error_of
from dtjob.client.kubeconfig import access

PAGE = 500
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
WATCH_SECONDS = 300


class Cluster:
    """The calls of a user to one namespace of a cluster. Every method may raise ClientError."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self.connection, self.namespace = connection, namespace

    def get(self, kind: str, name: str, seconds: float | None = None, until: float = math.inf) -> Object:
        """The object of this name. Raises NotFound.

        `seconds`: how long it is tried, if not as usual. `until`: the end of the last try (time.monotonic).
        """
        return self.connection.call("GET", self.path_of(kind, name), seconds=seconds, until=until)

    def find(self, kind: str, name: str) -> Object | None:
        """The object of this name, None if there is none."""
        try:
            return self.get(kind, name)
        except NotFound:
            return None

    def list(self, kind: str, selector: str = "", fields: str = "", *, everywhere: bool = False) -> list[Object]:
        """The objects with these labels and fields, of this namespace or of all."""
        return self.listed(kind, selector, fields, everywhere=everywhere)[0]

    def listed(
        self, kind: str, selector: str = "", fields: str = "", *, everywhere: bool = False
    ) -> tuple[builtins.list[Object], str]:
        """The objects that `list` gives, and the version from which to watch them."""
        query: dict[str, str | int | bool] = {"limit": PAGE, "labelSelector": selector, "fieldSelector": fields}
        found: builtins.list[Object] = []
        while True:
            page = self.connection.call("GET", self.path(kind, everywhere=everywhere), query=query)
            found += page.get("items") or []
            query["continue"] = page["metadata"].get("continue") or ""
            if not query["continue"]:
                return found, str(page["metadata"].get("resourceVersion", ""))

    def create(self, manifest: Object, *, dry_run: bool = False) -> Object:
        """The object as it is stored. Raises Conflict if there is one of this name."""
        query: Query = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        return self.connection.call("POST", self.path(manifest["kind"]), manifest, query)

    def patch(self, kind: str, name: str, uid: str, change: Object) -> Object:
        """Merge this change into the object. Raises NotFound, and Conflict if another object has this name."""
        body = {**change, "metadata": {**change.get("metadata", {}), "uid": uid}}
        with _meant(name):
            return self.connection.call("PATCH", self.path_of(kind, name), body, content=MERGE_PATCH)

    def delete(
        self, kind: str, name: str, uid: str, propagation: str = "Background", seconds: int | None = None
    ) -> None:
        """Delete the object. Raises NotFound, and Conflict if the object of this name is another one."""
        body: Object = {"propagationPolicy": propagation, "preconditions": {"uid": uid}}
        if seconds is not None:
            body["gracePeriodSeconds"] = seconds
        with _meant(name):
            self.connection.call("DELETE", self.path_of(kind, name), body)

    def watch(
        self,
        kind: str,
        version: str,
        selector: str = "",
        fields: str = "",
        *,
        everywhere: bool = False,
        until: float = math.inf,
    ) -> Iterator[tuple[str, Object]]:
        """What happens to objects after this version: ADDED, MODIFIED or DELETED, and the object.

        Ends after WATCH_SECONDS, or `until` then (time.monotonic).
        """
        now = time.monotonic()
        query: Query = {
            "watch": True,
            "resourceVersion": version,
            "labelSelector": selector,
            "fieldSelector": fields,
            "timeoutSeconds": max(1, math.ceil(min(until - now, WATCH_SECONDS))),
        }
        until = min(until, now + WATCH_SECONDS + 30)  # the server ends it before
        with self.connection.stream(self.path(kind, everywhere=everywhere), query, until) as lines:
            for line in lines:
                try:
                    event = json.loads(line)
                except ValueError:
                    raise NotReached("the connection to the cluster broke in the middle of a line") from None
                if event["type"] == "ERROR":
                    raise error_of(int(event["object"].get("code", 500)), json.dumps(event["object"]).encode())
                yield event["type"], event["object"]

    def path(self, kind: str, *, everywhere: bool = False) -> str:
        """The path of the objects of this kind."""
        return kinds.path(*kinds.KINDS[kind], None if everywhere else self.namespace)

    def path_of(self, kind: str, name: str) -> str:
        """The path of one object. Raises BadName: a path without a name would be that of all objects."""
        if not _NAME.fullmatch(name):
            raise BadName(f"{name!r} is no name; write lower-case letters, digits, dots and hyphens")
        return f"{self.path(kind)}/{name}"

    def log(self, pod: str, sink: Callable[[bytes], object] | None = None, **query: Any) -> bytes:
        """The log of the pod so far, or nothing if `sink` takes its pieces."""
        return self.connection.raw("GET", f"{self.path_of('Pod', pod)}/log", query=query, seconds=0, sink=sink)


@contextlib.contextmanager
def _meant(name: str) -> Iterator[None]:
    """Raise Conflict where the API server says that the object of this name has another uid."""
    try:
        yield
    except Refused as error:
        if error.code in (409, 422) and "uid" in str(error).lower():
            said = f"{name}: was deleted, and another object has its name now"
            raise Conflict(said, 409, "Conflict") from None
        raise


def connect(kubeconfig: str | None = None, context: str | None = None, namespace: str | None = None) -> Cluster:
    """The cluster that kubectl would use, with the namespace of its context if none is given. Raises NoCluster."""
    if namespace and not _NAME.fullmatch(namespace):
        raise BadName(f"--namespace: {namespace!r} is no name; write lower-case letters, digits and hyphens")
    found = access(kubeconfig, context)
    return Cluster(Connection(found), namespace or found.namespace)
