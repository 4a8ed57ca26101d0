# SPDX-License-Identifier: Apache-2.0
"""Calls about Kueue's objects, which are there only where Kueue is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dtjob.controller.cluster import Refused, Stale
from dtjob.kube.api_error import ApiError
from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import PatchWorkload

MAY_BE_HIDDEN = ("LocalQueue", "ClusterQueue")
"""These only help to place a job. Without the right to see them it begins all the same."""
_JSON = "application/json"


class WorkloadCalls(ABC):
    """What a connection to an API server can do with them."""

    @abstractmethod
    async def _call(self, method: str, path: str, body: Any = None, accept: str = _JSON) -> dict[str, Any]:
        """One call, and its answer. Raises ApiError, or ClusterError where there was none."""

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


def _typed(manifest: Manifest) -> Manifest:
    return {**manifest, "apiVersion": kueue.API_VERSION, "kind": kueue.KIND}
