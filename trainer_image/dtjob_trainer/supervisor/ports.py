# SPDX-License-Identifier: Apache-2.0
"""The ports of a task: its supervisor's HTTP ports, and whether TensorFlow's is free.

HTTP is served by one event loop, without a thread for each request. The status port (/status, /metrics, /healthz) is
for the operator and for Prometheus. The rendezvous port (POST /rendezvous and /log) is for the job's own pods. They are
two ports so that a NetworkPolicy can treat them differently.
"""

import asyncio
import contextlib
import json
import re
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from dtjob_trainer.contract import exit_codes
from dtjob_trainer.contract.log_line import Facts
from dtjob_trainer.contract.task import Task
from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.supervisor.metrics import exposition, labels_of

LONGEST_REQUEST = 65536
"""Bytes of a request, head and body. A longer one closes its connection."""

MOST_CONNECTIONS = 1000
"""Connections that one address may have at a time, each of which may hold a request in memory: more than a node has
tasks, if they share its address. A larger job may have two for each task, all of which may come through one proxy."""

_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error"}

Response = tuple[int, str, bytes]
"""Status code, content type and body."""
Respond = Callable[[str, str, bytes, str], Awaitable[Response]]
"""Answers one request, given as method, path, body and the address that it came from."""
Register = Callable[[Registration, str], Awaitable[Answer]]
"""Answers a registration that came from an address."""
TakeLog = Callable[[bytes], None]
"""Takes the body of POST /log (tails.py). Raises ValueError if it is none."""


class Server:
    """Listens on one port, and answers each request by `respond`."""

    def __init__(self, respond: Respond, most_connections: int = MOST_CONNECTIONS) -> None:
        """`most_connections`: of one address at a time."""
        self.respond, self.most_connections = respond, most_connections
        self._server: asyncio.Server | None = None
        self._connections: Counter[str] = Counter()

    async def start(self, host: str | None, port: int) -> int:
        """Listen on `port` of `host` (None: all addresses). Returns the port. Raises OSError if it is in use."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self.respond, self._connections, self.most_connections), host, port, backlog=1024
        )
        return int(self._server.sockets[0].getsockname()[1])


def rendezvous_server(register: Register, take_log: TakeLog | None = None, tasks: int = 0) -> Server:
    """A server that answers registrations of `tasks` tasks with `register`, and takes their last lines with
    `take_log`."""

    async def respond(method: str, path: str, body: bytes, address: str) -> Response:
        if path.partition("?")[0] not in ("/rendezvous", "/log"):
            return 404, "text/plain", b"there is /rendezvous and /log\n"
        if method != "POST":
            return 405, "text/plain", b"POST a registration or a log here\n"
        try:
            if path.startswith("/log"):
                if take_log is not None:  # otherwise the job keeps no logs
                    take_log(body)
                return 200, "text/plain", b"ok\n"
            registration = Registration.from_json(json.loads(body))
        except RecursionError:
            return 400, "text/plain", b"nested too deep\n"
        except ValueError as error:
            return 400, "text/plain", f"{error}\n".encode()
        return _json((await register(registration, address)).to_json())

    return Server(respond, max(MOST_CONNECTIONS, 2 * tasks))


def status_server(status: Callable[[], dict[str, Any]], labels: dict[str, str]) -> Server:
    """A server of one task's status. `labels` go on every metric."""

    async def respond(method: str, path: str, body: bytes, address: str) -> Response:
        if method not in ("GET", "HEAD"):
            return 405, "text/plain", b"only GET here\n"
        match path.partition("?")[0]:
            case "/status":
                return _json(status())
            case "/metrics":
                return (200, *exposition(status(), labels))
            case "/healthz":
                return 200, "text/plain", b"ok\n"
        return 404, "text/plain", b"there is /status, /metrics and /healthz\n"

    return Server(respond)


class _Connection(asyncio.Protocol):
    """One client, with one request at a time. If the client disconnects, the request in progress is cancelled.

    No request is answered while the client does not read the answers before.
    """

    def __init__(self, respond: Respond, connections: Counter[str], most: int) -> None:
        """`connections`: the number of connections of each address, this one not among them yet. `most`: of one
        address."""
        self._respond, self._connections, self._most, self._buffer = respond, connections, most, b""
        self._transport: asyncio.Transport
        self._answering: asyncio.Task[None] | None = None
        self._reads = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._address = str(transport.get_extra_info("peername")[0])
        self._connections[self._address] += 1
        if self._connections[self._address] > self._most:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections[self._address] -= 1
        if not self._connections[self._address]:
            del self._connections[self._address]
        if self._answering:
            self._answering.cancel()

    def pause_writing(self) -> None:
        self._reads = False

    def resume_writing(self) -> None:
        self._reads = True
        if self._answering is None:
            self._next_request()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > LONGEST_REQUEST:
            self._transport.close()
        elif self._answering is None and self._reads:
            self._next_request()

    def _next_request(self) -> None:
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        first, *headers = head.decode("latin-1").split("\r\n")
        values = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in headers)}
        length, parts = values.get("content-length", "0"), first.split(" ")
        if len(parts) != 3 or not re.fullmatch(r"[0-9]{1,9}", length):
            self._send((400, "text/plain", b"not a request\n"), keep=False, head_only=False)
            return
        if len(rest) < int(length):
            return
        self._buffer = rest[int(length) :]
        keep = parts[2] == "HTTP/1.1" and values.get("connection", "").lower() != "close"
        self._answering = asyncio.create_task(self._answer(parts[0], parts[1], rest[: int(length)], keep))

    async def _answer(self, method: str, path: str, body: bytes, keep: bool) -> None:
        try:
            response = await self._respond(method, path, body, self._address)
        except Exception as error:  # a bug in one response must not end the supervisor
            response = (500, "text/plain", f"{type(error).__name__}: {error}\n".encode())
        self._send(response, keep=keep, head_only=method == "HEAD")
        self._answering = None
        if keep and self._reads and self._buffer:
            self._next_request()

    def _send(self, response: Response, *, keep: bool, head_only: bool) -> None:
        code, content_type, body = response
        head = (
            f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
            f"Connection: {'keep-alive' if keep else 'close'}\r\n\r\n"
        )
        with contextlib.suppress(OSError):
            self._transport.write(head.encode() + (b"" if head_only else body))
        if not keep:
            self._transport.close()


def _json(body: dict[str, Any]) -> Response:
    return 200, "application/json", json.dumps(body).encode()


class PortInUse(Exception):
    """A port cannot be listened on. The message names the variable that sets it."""

    @property
    def facts(self) -> Facts:
        """The facts for the last log line. On another node, or later, the port may be free."""
        told = f"{type(self).__name__}: {self}"
        return {"exitCode": exit_codes.FAILED, "stepped": False, "exception": told, "transient": True}


async def listen(
    task: Task, status: Callable[[], dict[str, Any]], register: Register | None, take_log: TakeLog | None = None
) -> None:
    """Listen on the ports that the task has. `register` answers registrations at the chief task, and `take_log` keeps
    logs there. Raises PortInUse."""
    servers = []
    if register is not None and task.rendezvous_port is not None:
        answering = rendezvous_server(register, take_log, len(task.members))
        servers.append(("DTJOB_RENDEZVOUS_ADDRESS", task.rendezvous_port, answering))
    if task.status_port:
        servers.append(("DTJOB_STATUS_PORT", task.status_port, status_server(status, labels_of(task))))
    for variable, port, server in servers:
        try:
            # Under `dtjob run` all supervisors are on one machine, whose network others may use.
            await server.start("127.0.0.1" if task.parent else None, port)
        except OSError as error:
            raise PortInUse(f"{variable} {port} cannot be listened on: {error}") from None


def port_is_free(port: int) -> bool:
    """Whether TensorFlow can listen on TCP `port`. Connections in TIME_WAIT do not prevent that."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
