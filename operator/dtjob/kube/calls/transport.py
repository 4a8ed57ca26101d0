# SPDX-License-Identifier: Apache-2.0
"""Requests to one API server: JSON over connections that stay open, with as little in between as can be.

Where the server is, and with which credentials it is called, `client/kubeconfig.py` says, as for the command line. That
one's transport is synchronous, and quick to import; this one has thousands of calls and watches at a time.
"""

import asyncio
import math
import time
from asyncio import sslproto
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from dtjob.client.errors import ClientError
from dtjob.client.kubeconfig import Access
from dtjob.controller.cluster import ClusterError
from dtjob.kube import deep_json

_Answer = TypeVar("_Answer")
TOKEN_SECONDS = 10.0
"""How long a token is used before its file is read, or its plugin is asked, again. Kubernetes replaces it early."""
READ_BYTES = 32 * 1024
"""What is held of each TLS connection for what comes in; a record of TLS has 16 KB at most."""


def hold_little_for_each_connection() -> None:
    """Let asyncio hold READ_BYTES for each TLS connection of this process from now on. Its own measure is 256 KB, which
    are 17 MB where 50 calls are under way, and reads nothing faster."""
    sslproto.SSLProtocol.max_size = READ_BYTES


class Transport:
    """One session of connections. To be entered before the first request, where an event loop runs."""

    def __init__(self, access: Access, timeout_seconds: float, connect_seconds: float | None = None) -> None:
        self.access = access
        self._trusted = access.trusted if access.trusted is not None else False
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=connect_seconds)
        known = {"server_hostname": access.server_name, "proxy": access.proxy}
        self._options: dict[str, Any] = {name: value for name, value in known.items() if value}
        self._who: list[tuple[str, str]] = []
        self._read_at = -math.inf

    async def __aenter__(self) -> Self:
        # No limit: calls have slots of their own, and watches, one for each namespace, would leave none to them.
        connector = aiohttp.TCPConnector(limit=0, ssl=self._trusted)
        # Not trust_env: aiohttp would look for a proxy, and for ~/.netrc, in a thread at each request.
        self._session = aiohttp.ClientSession(connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def request(
        self, method: str, path: str, headers: Mapping[str, str], body: Any = None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """HTTP status, text and headers of the answer. `path` is quoted already; a body is sent as JSON.

        Raises ClusterError without a token, and aiohttp.ClientError, TimeoutError or OSError if no answer came.
        """
        data = None if body is None else deep_json.dumps(body)
        answer = await self._answered(method, path, headers, data=data, timeout=self._timeout)
        async with answer:
            return answer.status, await answer.read(), answer.headers

    async def open(
        self, path: str, headers: Mapping[str, str], seconds: float, silent: float
    ) -> aiohttp.ClientResponse:
        """The answer to a GET, yet to be read and released, for `seconds` at most, of which `silent` may pass without
        a byte. Raises as `request` does."""
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=silent, sock_read=silent)
        return await self._answered("GET", path, headers, timeout=timeout)

    async def authorized(self, headers: Mapping[str, str]) -> CIMultiDict[str]:
        """These headers with those that say who asks. Raises ClusterError if there is no credential to call with.

        A file is read, or a plugin is asked, in a thread, and not at each call.
        """
        now = time.monotonic()
        if now - self._read_at > TOKEN_SECONDS:
            self._who = await _without_holding(self.access.headers)
            self._read_at = now
        return CIMultiDict([*headers.items(), *self._who])

    def session(self, headers: Mapping[str, str]) -> aiohttp.ClientSession:
        """Connections for a client that knows only URLs: they reach the API server as these do, and send `headers`."""

        async def named(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
            request.server_hostname = self.access.server_name
            return await handler(request)

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._trusted),
            headers=headers,
            proxy=self.access.proxy,
            middlewares=(named,) if self.access.server_name else (),
        )

    async def _answered(
        self, method: str, path: str, headers: Mapping[str, str], **options: Any
    ) -> aiohttp.ClientResponse:
        """The answer, yet to be read. A credential that is refused (401) is renewed once."""
        url = URL(self.access.server + path, encoded=True)
        sent = await self.authorized(headers)
        answer = await self._session.request(method, url, headers=sent, **self._options, **options)
        if answer.status != 401 or not await _without_holding(self.access.renewed, sent.get("Authorization")):
            return answer
        answer.release()
        self._read_at = -math.inf
        sent = await self.authorized(headers)
        return await self._session.request(method, url, headers=sent, **self._options, **options)


async def _without_holding(ask: Callable[..., _Answer], *args: object) -> _Answer:
    """What this says, asked in a thread: a plugin may take seconds. Raises ClusterError."""
    try:
        return await asyncio.to_thread(ask, *args)
    except ClientError as error:
        raise ClusterError(f"there is no token to call with: {error}") from None
