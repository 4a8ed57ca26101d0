# SPDX-License-Identifier: Apache-2.0
"""A server of PodGroups, as the tests of their calls and their informers need one."""

import asyncio
from collections.abc import AsyncIterator

from dtjob.api.spec.scheduling import GangProvider
from dtjob.controller.cluster import ClusterError
from dtjob.kube.api_error import ApiError
from dtjob.objects import gangs
from dtjob.objects.manifest import Manifest

KUBERNETES, VOLCANO = (gangs.KINDS[one] for one in (GangProvider.KUBERNETES, GangProvider.VOLCANO))
NOT_FOUND = ApiError(404, "NotFound", "the server could not find the requested resource")


class Server:
    """Answers discovery, and LISTs of PodGroups."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions
        self.calls: list[str] = []
        self.groups: list[Manifest] = []
        self.version = 100
        self.error: ClusterError | None = None
        self.deleted: list[str] = []
        self.events: asyncio.Queue[tuple[str, Manifest] | Exception] = asyncio.Queue()

    async def serves(self, version: str, plural: str) -> bool:
        self.calls.append(f"GET /apis/{version}")
        if self.error:
            raise self.error
        return version in self.versions and plural == "podgroups"

    async def pages(
        self, kind: str, namespace: str | None, selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], int]]:
        self.calls.append(f"LIST {kind} {namespace}")
        if self.error:
            raise self.error
        yield [one for one in self.groups if one["kind"] == kind], self.version

    async def watch(
        self, kind: str, namespace: str | None, selector: str, version: int
    ) -> AsyncIterator[tuple[str, Manifest]]:
        self.calls.append(f"WATCH {kind} from {version}")
        while True:
            event = await self.events.get()
            if isinstance(event, Exception):
                raise event
            yield event

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        self.deleted.append(f"{kind}/{name}/{uid}")
