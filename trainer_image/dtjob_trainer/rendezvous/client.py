# SPDX-License-Identifier: Apache-2.0
"""Reports a task to the chief task's supervisor, about once a second, and passes each answer on."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable, Sequence

from dtjob_trainer.contract.task import host_of
from dtjob_trainer.errors import TaskError
from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.rendezvous.rendezvous import hold_seconds

PAUSE_SECONDS = 1.0
"""Pause after an answer that was acted upon (or a refusal), unless there is news in this task."""

RECONNECT_SECONDS = 0.2
"""Pause after a failed attempt to reach the chief task's supervisor."""

SPARE_SECONDS = 5.0
"""How much longer than the host may hold an answer back until a silent connection is given up."""

RESOLVE_SECONDS = 30.0
"""Limit for resolving the chief's name. A resolver asks its second server after 5 s, for each look-up."""

_FAILURES = (OSError, EOFError, ValueError, KeyError, TypeError, TimeoutError, asyncio.LimitOverrunError)
"""What a request may raise because of the network or the other end."""

Ask = Callable[[Registration], Awaitable[Answer]]


class RendezvousClient:
    """Reports this task until it is cancelled."""

    def __init__(
        self,
        ask: Ask,
        describe: Callable[[], Registration],
        on_answer: Callable[[Registration, Answer], None],
        on_problem: Callable[[str], None],
    ) -> None:
        """`describe` returns the state of the task. `on_problem` gets the reason if the host cannot be reached."""
        self._ask, self._describe, self._on_answer, self._on_problem = ask, describe, on_answer, on_problem
        self._news = asyncio.Event()

    def news(self) -> None:
        """Something about this task has changed: report at once."""
        self._news.set()

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            self._news.clear()
            registration, pause = self._describe(), 0.0
            answer: Answer | None = None
            asking = asyncio.ensure_future(self._ask(registration))
            news = asyncio.ensure_future(self._news.wait())
            try:
                await asyncio.wait((asking, news), return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    continue
                answer = asking.result()
            except _FAILURES as error:
                pause = RECONNECT_SECONDS
                self._on_problem(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
            finally:
                asking.cancel()
                news.cancel()
                await asyncio.wait((asking, news))
            if answer is not None:  # outside the try: its errors are not the fault of the other end
                self._on_answer(registration, answer)
                pause = 0.0 if answer.kind in ("wait", "continue") else PAUSE_SECONDS
            if pause:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), pause)


class HttpAsk:
    """Sends registrations over HTTP, on one connection for as long as it lasts.

    If a request is cancelled, the connection is closed: the host notices that at once.
    """

    def __init__(self, address: str, members: int) -> None:
        """`address`: `host:port` of the chief task's supervisor. Raises TaskError if it is not of this form."""
        self._place = _place(address)
        self._limit = hold_seconds(members) + SPARE_SECONDS
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __call__(self, registration: Registration) -> Answer:
        """Send one registration and wait for its answer. Raises OSError, EOFError, ValueError or TimeoutError."""
        connection, self._connection = self._connection, None
        if connection and connection[0].at_eof():
            connection[1].close()
            connection = None
        reused = connection is not None
        try:
            addresses = [] if connection else await _addresses(*self._place)
            async with asyncio.timeout(self._limit):
                if connection is None:
                    connection = await _connected(addresses)
                answer = await self._exchange(*connection, registration)
        except BaseException as error:
            if connection:
                connection[1].close()
            if reused and isinstance(error, (ConnectionError, EOFError)):
                return await self(registration)  # the old connection had ended without notice
            raise
        self._connection = connection
        return answer

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, registration: Registration
    ) -> Answer:
        host, port = self._place
        address, body = f"{host}:{port}", json.dumps(registration.to_json()).encode()
        head = (
            f"POST /rendezvous HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        status, *headers = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        lengths = [line.partition(":")[2] for line in headers if line.lower().startswith("content-length:")]
        text = await reader.readexactly(int(lengths[0]) if lengths else 0)
        if not status.startswith("HTTP/1.1 200"):
            raise ValueError(f"{address} answered {status}: {text.decode(errors='replace').strip()}")
        return Answer.from_json(json.loads(text))


async def _addresses(host: str, port: int) -> list[tuple[str, int]]:
    """The addresses to which the name resolves. Raises OSError or TimeoutError.

    The look-up has a time limit of its own. Otherwise a slow look-up would leave no time for the answer, each time.
    """
    async with asyncio.timeout(RESOLVE_SECONDS):
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(str(address[0]), int(address[1])) for *_, address in found]


async def _connected(addresses: Sequence[tuple[str, int]]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first address that accepts one. Raises OSError."""
    problem: OSError = ConnectionError("the name leads nowhere")
    for address in addresses:
        try:
            return await asyncio.open_connection(*address)
        except OSError as error:
            problem = error
    raise problem


def _place(address: str) -> tuple[str, int]:
    host, port = host_of(address), address.rpartition(":")[2]
    if not host or not port.isdecimal():
        raise TaskError(f"DTJOB_RENDEZVOUS_ADDRESS is {address!r}; it must be host:port of the chief task's supervisor")
    return host, int(port)
