# SPDX-License-Identifier: Apache-2.0
"""Calls to the API server: JSON by the standard library, which is quick to import."""

import base64
import contextlib
import http.client
import json
import socket
import ssl
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote, urlencode, urlsplit

from dtjob import __version__
from dtjob.client import patience
from dtjob.client.errors import ClientError, Ended, NoCluster, NotFound, NotReached, Unavailable, error_of
from dtjob.client.kubeconfig import Access
from dtjob.client.patience import Outage, Patience

Object = dict[str, Any]
Query = Mapping[str, str | int | bool]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
CALL_SECONDS = 30.0
KEPT_SECONDS = 20.0
"""How long a connection is kept without a call. A server may close it later, and a call must not meet that."""
_PIECE = 65536
USER_AGENT = f"dtjob-client/{__version__}"
_BROKEN = (OSError, http.client.HTTPException, ssl.SSLError)


class Connection:
    """One API server. Each thread has a connection of its own, which stays open between calls."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.outage = Outage(lambda text: sys.stderr.write(f"dtjob: {text}\n"))
        self._open = threading.local()
        self._links: weakref.WeakSet[http.client.HTTPConnection] = weakref.WeakSet()
        self._has_ended = False

    def end(self) -> None:
        """End the calls and streams of all threads, and let no other begin: they raise Ended."""
        self._has_ended = True
        for link in list(self._links):
            with contextlib.suppress(OSError, AttributeError):  # one that is closed has no socket
                link.sock.shutdown(socket.SHUT_RDWR)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Query | None = None,
        content: str = JSON,
        *,
        seconds: float | None = None,
    ) -> Object:
        """The JSON that the API server answers. Raises ClientError. `seconds`: as in `raw`."""
        text = self.raw(method, path, body, query, content, seconds=seconds) or b"{}"
        try:
            answer: Object = json.loads(text)
        except ValueError:
            raise NotReached(f"{self.access.server} does not answer as an API server does") from None
        return answer

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Query | None = None,
        content: str = JSON,
        *,
        seconds: float | None = None,
        sink: Callable[[bytes], object] | None = None,
    ) -> bytes:
        """The body that the API server answers, or nothing if `sink` takes its pieces. Raises ClientError.

        An API server that is overloaded or starts is asked again, for so many seconds, if nothing can happen twice.
        """
        data = None if body is None else json.dumps(body).encode()
        trying = Patience(self.outage, time.monotonic() + (patience.CALL_SECONDS if seconds is None else seconds))
        repeated = False
        while True:
            try:
                text = self._answered(method, _url(self._prefix + path, query), data, content, sink)
                trying.answered()
                return text
            except Unavailable as error:
                if not _may_repeat(method, error) or not trying.wait(error):
                    raise
                repeated = True
            except NotFound:
                if method == "DELETE" and repeated:
                    return b""  # an earlier try has deleted it
                raise

    def _answered(
        self, method: str, url: str, data: bytes | None, content: str, sink: Callable[[bytes], object] | None
    ) -> bytes:
        """The body of one call: asked once more with a new credential, or on a new connection. Raises ClientError."""
        is_new = renewed = False
        while True:
            link, headers = self._link(), self._headers(content)
            try:
                self._send(link, method, url, headers, data)
                answer = link.getresponse()
                text = b"" if sink is not None and answer.status == 200 else answer.read()
                while sink is not None and (piece := answer.read(_PIECE)):
                    sink(piece)
            except _BROKEN as error:
                self.close()
                # A connection that was kept may be closed by the server. Only a call without effect is repeated.
                can_repeat = method == "GET" and sink is None and not is_new
                if can_repeat and isinstance(error, http.client.HTTPException | ConnectionError):
                    is_new = True
                    continue
                raise self._unreachable(error) from None
            if answer.status == 401 and not renewed and self.access.renewed(headers.get("Authorization")):
                renewed = True  # a refused call has had no effect
                self.close()  # a connection keeps the certificate with which it began
                continue
            if not 200 <= answer.status < 300:
                raise error_of(answer.status, text, answer.headers["Retry-After"])
            return text

    @contextlib.contextmanager
    def stream(self, path: str, query: Query | None = None, silent: float | None = None) -> Iterator[Iterator[bytes]]:
        """The lines of an answer as they come, on a connection of its own. Raises ClientError.

        `silent`: seconds without a line after which the answer ends. None: no limit.
        """
        link, headers = self._new(silent), self._headers(JSON)
        try:
            self._send(link, "GET", _url(self._prefix + path, query), headers)
            answer = link.getresponse()
            if answer.status == 401 and self.access.renewed(headers.get("Authorization")):
                link.close()
                link = self._new(silent)
                self._send(link, "GET", _url(self._prefix + path, query), self._headers(JSON))
                answer = link.getresponse()
            if answer.status != 200:
                raise error_of(answer.status, answer.read(), answer.headers["Retry-After"])
            self.outage.answered()
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
        if self._has_ended:
            raise Ended("this client has ended")
        server = urlsplit(self.access.server)
        host, trusted = server.hostname or "", self.access.trusted
        port = server.port or (443 if trusted else 80)
        proxy = self.access.proxy
        through = urlsplit(proxy) if proxy else None
        at = (through.hostname or "", through.port or 80) if through else (host, port)
        if through and through.scheme not in ("", "http"):
            raise NoCluster(f"a proxy with {through.scheme}:// cannot be used; give one that begins with http://")
        login = f"{unquote(through.username)}:{unquote(through.password or '')}" if through and through.username else ""
        if trusted is None:
            link = http.client.HTTPConnection(*at, timeout=seconds)
        else:
            link = _Secure(*at, trusted, self.access.server_name, seconds)
        if through is not None:
            pair = base64.b64encode(login.encode()).decode()
            link.set_tunnel(host, port, {"Proxy-Authorization": f"Basic {pair}"} if login else None)
        self._links.add(link)
        return link

    def _send(
        self,
        link: http.client.HTTPConnection,
        method: str,
        url: str,
        headers: http.client.HTTPMessage,
        data: bytes | None = None,
    ) -> None:
        link.request(method, url, data, cast("Mapping[str, str]", headers))  # of which one may stand twice
        if self._has_ended:  # `end` may have found the link before it had a socket
            raise Ended("this client has ended")

    def _headers(self, content: str) -> http.client.HTTPMessage:
        found, own = (
            http.client.HTTPMessage(),
            [("Accept", JSON), ("User-Agent", USER_AGENT), ("Content-Type", content)],
        )
        for name, value in (*own, *self.access.headers()):
            found[name] = value
        return found

    def _unreachable(self, error: Exception) -> ClientError:
        if self._has_ended:
            return Ended("this client has ended")
        said = "it does not answer" if isinstance(error, TimeoutError) else " ".join(str(error).split())
        return NotReached(f"the cluster at {self.access.server} cannot be reached: {said or type(error).__name__}")


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


def _may_repeat(method: str, error: Unavailable) -> bool:
    """Whether the call may be sent again: the server has not begun it, or twice is the same as once."""
    return method != "POST" or error.code == 429 or (error.code == 503 and error.retry_after is not None)


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
