# SPDX-License-Identifier: Apache-2.0
"""Calls to the API server: JSON by the standard library, which is quick to import."""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from dtjob import __version__
from dtjob.client.errors import Unreachable, error_of
from dtjob.client.kubeconfig import Access

Object = dict[str, Any]
Query = Mapping[str, str | int | bool]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
CALL_SECONDS = 30.0
KEPT_SECONDS = 20.0
"""How long a connection is kept without a call. A server may close it later, and a call must not meet that."""
USER_AGENT = f"dtjob-client/{__version__}"
_BROKEN = (OSError, http.client.HTTPException, ssl.SSLError)


class Connection:
    """One API server. Each thread has a connection of its own, which stays open between calls."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._open = threading.local()

    def call(self, method: str, path: str, body: Any = None, query: Query | None = None, content: str = JSON) -> Object:
        """The JSON that the API server answers. Raises ClientError."""
        text = self.raw(method, path, body, query, content) or b"{}"
        try:
            answer: Object = json.loads(text)
        except ValueError:
            raise Unreachable(f"{self.access.server} does not answer as an API server does") from None
        return answer

    def raw(self, method: str, path: str, body: Any = None, query: Query | None = None, content: str = JSON) -> bytes:
        """The body that the API server answers. Raises ClientError."""
        data = None if body is None else json.dumps(body).encode()
        for attempt in (1, 2):
            link = self._link()
            try:
                link.request(method, _url(self._prefix + path, query), data, self._headers(content))
                answer = link.getresponse()
                text = answer.read()
            except _BROKEN as error:
                self.close()
                # A connection that was kept may be closed by the server. Only a call without effect is repeated.
                if attempt == 1 and method == "GET" and isinstance(error, http.client.HTTPException | ConnectionError):
                    continue
                raise self._unreachable(error) from None
            if not 200 <= answer.status < 300:
                raise error_of(answer.status, text)
            return text
        raise AssertionError("unreachable")

    @contextlib.contextmanager
    def stream(self, path: str, query: Query | None = None, silent: float | None = None) -> Iterator[Iterator[bytes]]:
        """The lines of an answer as they come, on a connection of its own. Raises ClientError.

        `silent`: seconds without a line after which the answer ends. None: no limit.
        """
        link = self._new(silent)
        try:
            link.request("GET", _url(self._prefix + path, query), headers=self._headers(JSON))
            answer = link.getresponse()
            if answer.status != 200:
                raise error_of(answer.status, answer.read())
            yield _lines(answer)
        except _BROKEN as error:
            raise self._unreachable(error) from None
        finally:
            link.close()

    def close(self) -> None:
        """Close the connection of this thread. The next call opens another."""
        link = getattr(self._open, "link", None)
        if link is not None:
            link.close()
            self._open.link = None

    @property
    def proxy(self) -> str | None:
        """The proxy of the kubeconfig or of the environment, None if there is none."""
        server = urlsplit(self.access.server)
        if self.access.proxy or proxy_bypass(server.hostname or ""):
            return self.access.proxy
        return getproxies().get(server.scheme)

    @property
    def _prefix(self) -> str:
        return urlsplit(self.access.server).path

    def _link(self) -> http.client.HTTPConnection:
        link: http.client.HTTPConnection | None = getattr(self._open, "link", None)
        now = time.monotonic()
        if link is not None and now - self._open.used > KEPT_SECONDS:
            self.close()
            link = None
        if link is None:
            link = self._open.link = self._new(CALL_SECONDS)
        self._open.used = now
        return link

    def _new(self, seconds: float | None) -> http.client.HTTPConnection:
        server = urlsplit(self.access.server)
        host, trusted = server.hostname or "", self.access.trusted
        port = server.port or (443 if trusted else 80)
        through = urlsplit(self.proxy) if self.proxy else None
        at = (through.hostname or "", through.port or 80) if through else (host, port)
        if trusted is None:
            link = http.client.HTTPConnection(*at, timeout=seconds)
        else:
            link = _Secure(*at, trusted, self.access.server_name, seconds)
        if through is not None:
            link.set_tunnel(host, port)
        return link

    def _headers(self, content: str) -> dict[str, str]:
        headers = {"Accept": JSON, "User-Agent": USER_AGENT, "Content-Type": content}
        authorization = self.access.authorization()
        return {**headers, "Authorization": authorization} if authorization else headers

    def _unreachable(self, error: Exception) -> Unreachable:
        said = "it does not answer" if isinstance(error, TimeoutError) else " ".join(str(error).split())
        return Unreachable(f"the cluster at {self.access.server} cannot be reached: {said or type(error).__name__}")


class _Secure(http.client.HTTPSConnection):
    """HTTPS whose certificate may have another name than the host."""

    def __init__(self, host: str, port: int, trusted: ssl.SSLContext, name: str | None, seconds: float | None) -> None:
        super().__init__(host, port, timeout=seconds, context=trusted)
        self._trusted, self._name = trusted, name

    def connect(self) -> None:
        """Connect, and check the certificate against the name."""
        if self._name is None:
            super().connect()
            return
        http.client.HTTPConnection.connect(self)
        self.sock: socket.socket = self._trusted.wrap_socket(self.sock, server_hostname=self._name)


def _url(path: str, query: Query | None) -> str:
    if not query:
        return path
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
    return f"{path}?{urlencode(texts)}"


def _lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Each line without its end. A silent answer ends."""
    with contextlib.suppress(TimeoutError):
        while line := answer.readline():
            yield line.rstrip(b"\r\n")
