"""Calls about Kueue's objects, which are there only where Kueue is."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import aiohttp

from dtjob.controller.cluster import ClusterError, Refused, Stale
from dtjob.kube.api_error import ApiError, error_of, object_of
from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import PatchWorkload

KINDS = {
    kueue.KIND: (kueue.API_VERSION, kueue.PLURAL),
    "LocalQueue": (kueue.API_VERSION, "localqueues"),
    "ClusterQueue": (kueue.API_VERSION, "clusterqueues"),
    "ResourceFlavor": (kueue.API_VERSION, "resourceflavors"),
    "WorkloadPriorityClass": (kueue.API_VERSION, "workloadpriorityclasses"),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses"),
}
"""Kind to API version and plural."""
MAY_BE_HIDDEN = ("LocalQueue", "ClusterQueue")
"""What tells only how a job is placed best: without the right to see them, which roles of earlier releases do not give,
it begins all the same."""
WATCH_SECONDS = 300
"""After which a watch is begun anew: what it missed is found then."""
SILENT_SECONDS = 90.0
"""A watch that says nothing for so long is dead: an API server sends bookmarks each minute."""
EXPIRED = 410
"""What the API server says where it no longer knows what came after a version."""
_JSON = "application/json"


class WorkloadCalls(ABC):
    """What a connection to an API server can do with them."""

    @abstractmethod
    async def _call(self, method: str, path: str, body: Any = None, accept: str = _JSON) -> dict[str, Any]:
        """One call, and its answer. Raises ApiError, or ClusterError where there was none."""

    @abstractmethod
    async def _open(self, path: str, seconds: float, silent: float) -> aiohttp.ClientResponse:
        """The answer to a GET that may take so long, and be silent for so long, yet to be read."""

    async def has_kueue(self) -> bool:
        """Whether the API server knows Workloads. Raises ClusterError where it does not say."""
        try:
            found = await self._call("GET", f"/apis/{kueue.API_VERSION}")
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return any(one.get("name") == kueue.PLURAL for one in found.get("resources") or ())

    async def patch_workload(self, namespace: str, action: PatchWorkload) -> Manifest:
        """PATCH the Workload, or its status, against its uid and resourceVersion."""
        body = dict(action.body)
        body["metadata"] = {**body.get("metadata", {}), "uid": action.uid, "resourceVersion": action.version}
        path = f"/apis/{kueue.API_VERSION}/namespaces/{namespace}/{kueue.PLURAL}/{action.name}"
        try:
            stored = await self._call("PATCH", f"{path}/status" if action.status else path, body)
        except ApiError as error:
            if error.code in (404, 409):
                raise Stale(str(error)) from None
            if error.code in (400, 422):
                raise Refused(str(error)) from None
            raise
        return _typed(stored)

    async def watch_workloads(self, namespace: str | None, version: int) -> AsyncIterator[tuple[str, Manifest]]:
        """What becomes of the Workloads of jobs after this version, for a while: ADDED, MODIFIED or DELETED, and the
        object. Raises ClusterError: ApiError with EXPIRED where that is too long ago."""
        query = {
            "watch": "true",
            "resourceVersion": str(version),
            "labelSelector": labels.JOB_NAME,
            "timeoutSeconds": str(WATCH_SECONDS),
            "allowWatchBookmarks": "true",  # signs of life
        }
        inside = f"/namespaces/{namespace}" if namespace else ""
        path = f"/apis/{kueue.API_VERSION}{inside}/{kueue.PLURAL}?{urlencode(query)}"
        try:
            response = await self._open(path, WATCH_SECONDS + 30, SILENT_SECONDS)
            async with response:
                if response.status != 200:
                    raise error_of(response.status, await response.read())
                async for line in _lines(response):
                    event = object_of(200, line)
                    if event["type"] == "ERROR":
                        raise error_of(event["object"].get("code", 500), json.dumps(event["object"]))
                    if event["type"] != "BOOKMARK":
                        yield event["type"], _typed(event["object"])
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ClusterError(f"the watch of Workloads broke ({type(error).__name__}: {error})") from error


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The lines of an answer: one event may be longer than what aiohttp reads as one."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line


def _typed(manifest: Manifest) -> Manifest:
    return {**manifest, "apiVersion": kueue.API_VERSION, "kind": kueue.KIND}
