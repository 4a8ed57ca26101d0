# SPDX-License-Identifier: Apache-2.0
"""Calls to the API server: JSON by the standard library, which is quick to import."""

import base64
import contextlib
import http.client
import json
import math
import os
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
_BROKEN = (OSError, http.client.HTTPException)


class Connection:
    """One API server. Each thread has a connection of its own, which stays open between calls.

    Every call may raise ClientError. `until`: the moment of time.monotonic() at which its answer ends at the latest.
    """

    def __init__(self, access: Access) -> None:
        self.access = access
        self.outage = Outage(lambda text: sys.stderr.write(f"dtjob: {text}\n"))
        self._of_thread = threading.local()
        self._links: weakref.WeakKeyDictionary[http.client.HTTPConnection, int] = weakref.WeakKeyDictionary()
        """Each with the process that made it."""
        self._beside: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._has_ended = False

    def end(self) -> None:
        """End the calls and streams of all threads, and let no other begin: they raise Ended."""
        self._has_ended = True
        for each in list(self._beside):
            each.end()
        for link, process in list(self._links.items()):
            if process != os.getpid():  # it goes on in the process from which this one was forked
                continue
            with contextlib.suppress(OSError, AttributeError):  # one that is closed has no socket
                link.sock.shutdown(socket.SHUT_RDWR)

    def beside(self) -> "Connection":
        """Another connection, which can be ended by itself, and ends with this one."""
        made = Connection(self.access)
        self._beside.add(made)
        if self._has_ended:
            made.end()
        return made

    def call(self, method: str, path: str, body: Any = None, query: Query | None = None, **how: Any) -> Object:
        """The JSON that the API server answers. `how`: as in `raw`."""
        text = self.raw(method, path, body, query, **how) or b"{}"
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
        *,
        content: str = JSON,
        seconds: float | None = None,
        until: float = math.inf,
        sink: Callable[[bytes], object] | None = None,
    ) -> bytes:
        """The body that the API server answers, or nothing if `sink` takes its pieces.

        An API server that is overloaded or starts is asked again, for so many seconds, if nothing can happen twice.
        """
        data = None if body is None else json.dumps(body).encode()
        trying = Patience(self.outage, time.monotonic() + (patience.CALL_SECONDS if seconds is None else seconds))
        repeated = False
        while True:
            try:
                text = self._once(method, self._url(path, query), data, content, until, sink)
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

    @contextlib.contextmanager
    def stream(self, path: str, query: Query | None = None, until: float = math.inf) -> Iterator[Iterator[bytes]]:
        """The lines of an answer as they come, on a connection of its own."""
        link = self._new()
        try:
            _limit(link, until)
            answer = self._asked(link, "GET", self._url(path, query))
            self.outage.answered()
            yield _lines(answer, link, until)
        except _BROKEN as error:
            raise self._unreachable(error) from None
        finally:
            link.close()

    def _once(
        self,
        method: str,
        url: str,
        data: bytes | None,
        content: str,
        until: float,
        sink: Callable[[bytes], object] | None,
    ) -> bytes:
        """The body of one call, on the connection of this thread."""
        link = self._link()
        was_open = link.sock is not None
        try:
            _limit(link, min(until, time.monotonic() + CALL_SECONDS))
            answer = self._asked(link, method, url, data, content)
            if sink is None:
                return answer.read()
            while piece := answer.read(_PIECE):
                _give(sink, piece)
            return b""
        except ClientError:  # an answer that was read
            raise
        except BaseException as error:
            link.close()
            if isinstance(error, _SinkFailed):
                raise error.error from None
            if not isinstance(error, _BROKEN):  # such as Ctrl-C: the next call must not meet this one's answer
                raise
            # The server may have closed a connection that was kept. Only a call without effect is repeated.
            is_closed = was_open and isinstance(error, http.client.HTTPException | ConnectionError)
            if is_closed and method == "GET" and sink is None:
                return self._once(method, url, data, content, until, sink)
            raise self._unreachable(error) from None

    def _asked(
        self, link: http.client.HTTPConnection, method: str, url: str, data: bytes | None = None, content: str = JSON
    ) -> http.client.HTTPResponse:
        """The answer, if it is a good one. A credential that is refused is renewed once: the call has had no effect."""
        renewed = False
        while True:
            headers = self._headers(content)
            self._check_goes_on()
            link.request(method, url, data, cast("Mapping[str, str]", headers))  # of which one may stand twice
            self._check_goes_on()  # `end` may have found the link before it had a socket
            answer = link.getresponse()
            if 200 <= answer.status < 300:
                return answer
            text = answer.read()
            if answer.status != 401 or renewed or not self.access.renewed(headers.get("Authorization")):
                raise error_of(answer.status, text, answer.headers["Retry-After"])
            renewed = True
            link.close()  # a connection keeps the certificate with which it began

    def _link(self) -> http.client.HTTPConnection:
        """The connection of this thread, closed if it was idle. The next request opens it."""
        mine, now = self._of_thread, time.monotonic()
        if getattr(mine, "process", None) != os.getpid():  # a process that was forked has a link of its own
            mine.link, mine.used, mine.process = self._new(), now, os.getpid()
        link: http.client.HTTPConnection = mine.link
        if now - mine.used > KEPT_SECONDS:
            link.close()
        mine.used = now
        return link

    def _new(self) -> http.client.HTTPConnection:
        server, proxy = urlsplit(self.access.server), self.access.proxy
        host, trusted = server.hostname or "", self.access.trusted
        port = server.port or (443 if trusted else 80)
        through = urlsplit(proxy) if proxy else None
        if through and through.scheme != "http":
            raise NoCluster(f"a proxy with {through.scheme}:// cannot be used; give one that begins with http://")
        at = (through.hostname or "", through.port or 80) if through else (host, port)
        link = http.client.HTTPConnection(*at) if trusted is None else _Secure(*at, trusted, self.access.server_name)
        if through is not None:
            login = f"{unquote(through.username)}:{unquote(through.password or '')}" if through.username else ""
            pair = base64.b64encode(login.encode()).decode()
            link.set_tunnel(host, port, {"Proxy-Authorization": f"Basic {pair}"} if login else None)
        self._links[link] = os.getpid()
        return link

    def _url(self, path: str, query: Query | None) -> str:
        path = urlsplit(self.access.server).path + path
        if not query:
            return path
        texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        return f"{path}?{urlencode(texts)}"

    def _headers(self, content: str) -> http.client.HTTPMessage:
        found = http.client.HTTPMessage()
        own = [("Accept", JSON), ("User-Agent", USER_AGENT), ("Content-Type", content)]
        for name, value in (*own, *self.access.headers()):
            found[name] = value
        return found

    def _check_goes_on(self) -> None:
        if self._has_ended:
            raise Ended("this client has ended")

    def _unreachable(self, error: Exception) -> ClientError:
        if self._has_ended:
            return Ended("this client has ended")
        said = "it does not answer" if isinstance(error, TimeoutError) else " ".join(str(error).split())
        return NotReached(f"the cluster at {self.access.server} cannot be reached: {said or type(error).__name__}")


class _Secure(http.client.HTTPSConnection):
    """HTTPS whose certificate may have another name than the host."""

    def __init__(self, host: str, port: int, trusted: ssl.SSLContext, name: str | None) -> None:
        super().__init__(host, port, context=trusted)
        self._trusted, self._name = trusted, name

    def connect(self) -> None:
        """Connect, and check the certificate against the name."""
        if self._name is None:
            super().connect()
            return
        http.client.HTTPConnection.connect(self)
        self.sock: socket.socket = self._trusted.wrap_socket(self.sock, server_hostname=self._name)


class _SinkFailed(Exception):
    """What takes an answer has failed, such as a file on a full disk. The connection has not."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def _give(sink: Callable[[bytes], object], piece: bytes) -> None:
    try:
        sink(piece)
    except OSError as error:
        raise _SinkFailed(error) from None


def _may_repeat(method: str, error: Unavailable) -> bool:
    """Whether the call may be sent again: the server has not begun it, or twice is the same as once."""
    return method != "POST" or error.code == 429 or (error.code == 503 and error.retry_after is not None)


def _limit(link: http.client.HTTPConnection, until: float) -> None:
    """Let what the link does next end at this moment. Raises TimeoutError after it."""
    seconds = None if until == math.inf else until - time.monotonic()
    if seconds is not None and seconds <= 0:
        raise TimeoutError
    link.timeout = seconds
    if link.sock is not None:
        link.sock.settimeout(seconds)


def _lines(answer: http.client.HTTPResponse, link: http.client.HTTPConnection, until: float) -> Iterator[bytes]:
    """Each line without its end, up to this moment."""
    with contextlib.suppress(TimeoutError):
        while line := answer.readline():
            yield line.rstrip(b"\r\n")
            _limit(link, until)
