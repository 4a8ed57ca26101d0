# SPDX-License-Identifier: Apache-2.0
"""Commands in pods and connections to their ports, over WebSockets."""

import asyncio
import contextlib
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from dtjob.client.cluster import Cluster
from dtjob.client.connection import USER_AGENT, Object
from dtjob.client.errors import ClientError, NotReached, error_of

STDOUT, STDERR, STATUS = 1, 2, 3
"""Channels of a command."""
PROTOCOL = "v4.channel.k8s.io"
_LARGEST_MESSAGE = 64 * 1024 * 1024
_LAST_BYTES = 4096
"""Of the standard error of a command, whose last line is the message if it fails."""
_DATA = b"\x00"
"""Begins a message with data of a forwarded port."""
_END_OF_HEAD = b"\r\n\r\n"
LARGEST_ANSWER = 4 * 1024 * 1024
ANSWER_SECONDS = 5.0
"""From the beginning of a question at a port to the last byte of its answer."""
_REFUSED = {403: "you may not open one; the role edit of the namespace has the right", 404: "it is not there"}
"""A refused WebSocket shows its HTTP status alone."""
Answer = TypeVar("Answer")
_Sending = contextlib.AbstractAsyncContextManager[object]
_Opened = contextlib.AbstractAsyncContextManager[aiohttp.ClientWebSocketResponse]


class CommandFailed(ClientError):
    """The command ended with an exit code other than 0. The message is the last line of its standard error."""


def run(call: Coroutine[Any, Any, Answer]) -> Answer:
    """What the coroutine returns. In a notebook, whose thread runs a loop already, it runs in another thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call)
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def running() -> Answer:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result((asyncio.get_running_loop(), task))
        return await call

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(asyncio.run, running())
        try:
            return found.result()
        except KeyboardInterrupt:
            loop, task = begun.result()
            with contextlib.suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(task.cancel)
            raise


def run_in_pod(
    cluster: Cluster, pod: str, container: str, command: Sequence[str], sink: Callable[[bytes], object]
) -> None:
    """Run a command in a container, and give its standard output to `sink` piece by piece. Raises ClientError."""
    said = deque[int](maxlen=_LAST_BYTES)
    takers = {STDOUT: sink, STDERR: said.extend}
    found = run(executed(cluster, pod, container, command, ("stdout", "stderr"), takers))
    if found.get("status") != "Success":
        lines = bytes(said).decode(errors="replace").strip().splitlines()
        raise CommandFailed(lines[-1] if lines else str(found.get("message") or "the connection to the pod broke"))


async def executed(
    cluster: Cluster,
    pod: str,
    container: str,
    command: Sequence[str],
    streams: Sequence[str],
    takers: Mapping[int, Callable[[bytes], object]],
    protocols: Sequence[str] = (PROTOCOL,),
    sending: Callable[[aiohttp.ClientWebSocketResponse], _Sending] = contextlib.nullcontext,
) -> Object:
    """Run a command in a container with these streams. Returns how it ended, empty if the connection broke.

    `takers`: what takes the data of a channel. `sending`: what sends to the socket meanwhile. Raises ClientError.
    """
    query = [("container", container), *((one, "true") for one in streams), *(("command", one) for one in command)]
    status, failed = b"", None
    path = f"{cluster.path('Pod')}/{pod}/exec?{urlencode(query)}"
    async with opened(cluster, path, protocols) as socket, sending(socket):
        async for channel, data in messages(socket):
            if channel == STATUS:
                status += data
            elif channel in takers:
                try:
                    takers[channel](data)
                except OSError as error:  # of a file or a pipe here, not of the connection
                    failed = error
                    break
    if failed is not None:
        raise failed
    found: Object = json.loads(status or b"{}")
    return found


async def forward(cluster: Cluster, pod: str, port: int, local: int, ready: Callable[[int], Awaitable[None]]) -> None:
    """Forward connections to a port of this machine (0: a free one) to a port of the pod, until it is cancelled.

    `ready` gets the local port once it listens, and connections are forwarded meanwhile. Raises what `ready` raises.
    """

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ClientError, OSError, aiohttp.ClientError):
            await _carry(cluster, pod, port, reader, writer)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", local)
    async with server:
        await ready(server.sockets[0].getsockname()[1])
        await server.serve_forever()


async def _carry(
    cluster: Cluster, pod: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Carry bytes between a connection and the port."""
    async with _forwarded(cluster, pod, port) as socket:

        async def send() -> None:
            while data := await reader.read(65536):
                await socket.send_bytes(_DATA + data)
            await socket.close()

        sending = asyncio.create_task(send())
        try:
            async for data in _received(socket):
                writer.write(data)
                await writer.drain()
        finally:
            sending.cancel()


async def answer(cluster: Cluster, pod: str, port: int, path: str) -> bytes:
    """The body of a GET at a port of the pod. Raises ClientError.

    The kubelet connects inside of the pod, so that a NetworkPolicy does not matter. The API server's proxy would need
    one that lets it in.
    """
    try:
        async with asyncio.timeout(ANSWER_SECONDS), _forwarded(cluster, pod, port) as socket:
            await socket.send_bytes(_DATA + f"GET {path} HTTP/1.0\r\nHost: {pod}\r\n\r\n".encode())
            text = b""
            async for data in _received(socket):
                text += data
                if len(text) > LARGEST_ANSWER:
                    raise NotReached(f"{pod}: the answer of port {port} is longer than {LARGEST_ANSWER} bytes")
                if _is_whole(text):
                    break
    except TimeoutError:
        raise NotReached(f"{pod}: port {port} does not answer") from None
    head, _, body = text.partition(_END_OF_HEAD)
    first = head.split(b"\r\n")[0].split(b" ")
    if first[1:2] != [b"200"]:
        raise NotReached(f"{pod}: port {port} answers {b' '.join(first[1:]).decode(errors='replace') or 'nothing'}")
    return body


def _is_whole(text: bytes) -> bool:
    """Whether this answer has as many bytes as it says. One that does not say ends with its connection."""
    head, end, body = text.partition(_END_OF_HEAD)
    said = re.search(rb"\r\ncontent-length: *(\d{1,9})", head, re.IGNORECASE)
    return bool(end and said and len(body) >= int(said[1]))


def _forwarded(cluster: Cluster, pod: str, port: int) -> _Opened:
    return opened(cluster, f"{cluster.path('Pod')}/{pod}/portforward?{urlencode({'ports': port})}")


async def messages(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[tuple[int, bytes]]:
    """The channel and the data of each message."""
    async for message in socket:
        if isinstance(message.data, bytes) and message.data:
            yield message.data[0], message.data[1:]


async def _received(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[bytes]:
    """What the port sends: channel 0 has it, channel 1 an error. Raises NotReached on an error.

    The first message of each channel is the number of the port.
    """
    begun: set[int] = set()
    async for channel, rest in messages(socket):
        if channel not in begun:
            begun.add(channel)
            rest = rest[2:]
        if rest and channel == 0:
            yield rest
        elif rest:
            raise NotReached(f"the connection to the pod broke: {' '.join(rest.decode(errors='replace').split())}")


@contextlib.asynccontextmanager
async def opened(
    cluster: Cluster, path: str, protocols: Sequence[str] = (PROTOCOL,)
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A WebSocket to the API server, with the first of these protocols that it knows. Raises ClientError if it
    refuses."""
    access = cluster.connection.access
    connector = aiohttp.TCPConnector(ssl=access.trusted if access.trusted is not None else False)
    async with aiohttp.ClientSession(connector=connector, headers={"User-Agent": USER_AGENT}) as session:

        async def connected(headers: Sequence[tuple[str, str]]) -> aiohttp.ClientWebSocketResponse:
            return await session.ws_connect(
                URL(access.server + path, encoded=True),
                protocols=protocols,
                max_msg_size=_LARGEST_MESSAGE,
                proxy=access.proxy,
                server_hostname=access.server_name,
                headers=headers,
            )

        headers = await asyncio.to_thread(access.headers)  # a plugin may take seconds
        try:
            try:
                socket = await connected(headers)
            except aiohttp.WSServerHandshakeError as error:
                refused = dict(headers).get("Authorization")
                if error.status != 401 or not await asyncio.to_thread(access.renewed, refused):
                    raise
                socket = await connected(await asyncio.to_thread(access.headers))
            async with socket:
                yield socket
        except aiohttp.WSServerHandshakeError as error:
            said = _REFUSED.get(error.status, f"the API server answers HTTP {error.status}")
            text = json.dumps({"message": f"no connection to the pod: {said}"}).encode()
            raise error_of(error.status, text) from None
        except (aiohttp.ClientError, OSError) as error:
            raise NotReached(f"the connection to the pod broke: {error}") from None
