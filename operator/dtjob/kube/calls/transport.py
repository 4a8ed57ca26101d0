# SPDX-License-Identifier: Apache-2.0
"""Requests to one API server: JSON over connections that stay open, with as little in between as can be.

The transport of the `kubernetes` client looks at each request for what only other clients of it need, and writes JSON
with the standard library. Its configuration is taken as it is: certificates, proxy, the server's name.
"""

from asyncio import sslproto
from collections.abc import Mapping
from typing import Any, Self

import aiohttp
from yarl import URL

from dtjob.kube import deep_json
from dtjob.kube.libraries import client
from dtjob.proxies import proxy_for

READ_BYTES = 32 * 1024
"""What is held of each TLS connection for what comes in; a record of TLS has 16 KB at most."""


def hold_little_for_each_connection() -> None:
    """Let asyncio hold READ_BYTES for each TLS connection of this process from now on. Its own measure is 256 KB, which
    are 17 MB where 50 calls are under way, and reads nothing faster."""
    sslproto.SSLProtocol.max_size = READ_BYTES


class Transport:
    """One session of connections. To be entered before the first request, where an event loop runs."""

    def __init__(
        self, api_client: client.ApiClient, timeout_seconds: float, connect_seconds: float | None = None
    ) -> None:
        self._configuration = api_client.configuration
        self._trusted = api_client.rest_client.ssl_context
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=connect_seconds)
        self.proxy: str | None = self._configuration.proxy or proxy_for(*_scheme_and_host(self._configuration.host))
        """Through which requests go, None if there is none."""
        known = {
            "server_hostname": self._configuration.tls_server_name,
            "proxy": self.proxy,
            "proxy_headers": self._configuration.proxy_headers,
        }
        self._options = {name: value for name, value in known.items() if value}

    async def __aenter__(self) -> Self:
        # No limit: calls have slots of their own, and watches, one for each namespace, would leave none to them.
        connector = aiohttp.TCPConnector(limit=0, ssl=self._trusted)
        # Not trust_env: aiohttp would look for a proxy, and for ~/.netrc, in a thread at each request.
        self._session = aiohttp.ClientSession(connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def request(
        self, method: str, path: str, headers: dict[str, str], body: Any = None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """HTTP status, text and headers of the answer. `path` is quoted already; a body is sent as JSON.

        Raises aiohttp.ClientError, TimeoutError or OSError where no answer came.
        """
        data = None if body is None else deep_json.dumps(body)
        url = URL(self._configuration.host + path, encoded=True)
        asked = self._session.request(method, url, data=data, headers=headers, timeout=self._timeout, **self._options)
        async with asked as answer:
            return answer.status, await answer.read(), answer.headers

    async def open(self, path: str, headers: dict[str, str], seconds: float, silent: float) -> aiohttp.ClientResponse:
        """The answer to a GET, yet to be read and released, for `seconds` at most, of which `silent` may pass without
        a byte. Raises as `request` does."""
        url = URL(self._configuration.host + path, encoded=True)
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=silent, sock_read=silent)
        return await self._session.get(url, headers=headers, timeout=timeout, **self._options)

    def session(self, headers: Mapping[str, str]) -> aiohttp.ClientSession:
        """Connections for a client that knows only URLs: they reach the API server as these do, and send `headers`."""

        async def named(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
            request.server_hostname = self._configuration.tls_server_name
            return await handler(request)

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._trusted),
            headers=headers,
            proxy=self.proxy,
            middlewares=(named,) if self._configuration.tls_server_name else (),
        )


def _scheme_and_host(server: str) -> tuple[str, str]:
    url = URL(server)
    return url.scheme, url.host or ""
