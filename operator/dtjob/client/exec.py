# SPDX-License-Identifier: Apache-2.0
"""A command in a container with the streams of this process, as `kubectl exec` runs one."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import termios
import threading
import tty as terminal
from collections.abc import AsyncIterator, Iterator, Sequence

import aiohttp

from dtjob.client.cluster import Cluster
from dtjob.client.errors import NotReached
from dtjob.client.streams import PROTOCOL, STATUS, STDERR, STDOUT, CommandFailed, messages, opened, path_of

STDIN, RESIZE, CLOSE = b"\x00", b"\x04", b"\xff"
"""What messages to the container begin with."""
_CLOSING_PROTOCOL = "v5.channel.k8s.io"
"""The protocol in which one end of a stream can be closed (KEP 4006). Without it no command sees the end of its input.
It is asked for only if that is needed."""
_INPUT = 0
"""The file descriptor of standard input."""
_MOST_PIECES = 16
"""Pieces of the input that are held while the command does not read them."""


def run(cluster: Cluster, pod: str, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> int:
    """Run the command and return its exit code. `stdin`: it reads our standard input. `tty`: that is a terminal, and it
    gets one too. Raises ClientError."""
    with _raw() if tty else contextlib.nullcontext():
        return asyncio.run(_run(cluster, pod, container, command, stdin=stdin, tty=tty))


async def _run(cluster: Cluster, pod: str, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> int:
    wanted = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    protocols = (_CLOSING_PROTOCOL, PROTOCOL) if stdin and not tty else (PROTOCOL,)
    path = path_of(cluster, pod, container, command, [name for name, is_wanted in wanted.items() if is_wanted])
    status = b""
    async with opened(cluster, path, protocols) as socket, _sending(socket, stdin=stdin, tty=tty):
        async for channel, data in messages(socket):
            if channel == STDOUT:
                _write(sys.stdout.buffer.fileno(), data)
            elif channel == STDERR:
                _write(sys.stderr.buffer.fileno(), data)
            elif channel == STATUS:
                status += data
    return exit_code(status)


def exit_code(status: bytes) -> int:
    """The exit code in the last message of a command. Raises ClientError if it has none."""
    if not status:
        raise NotReached("the connection to the pod broke")
    found = json.loads(status)
    if found.get("status") == "Success":
        return 0
    for cause in (found.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise CommandFailed(" ".join(str(found.get("message") or "the command could not be run").split()))


@contextlib.asynccontextmanager
async def _sending(socket: aiohttp.ClientWebSocketResponse, *, stdin: bool, tty: bool) -> AsyncIterator[None]:
    """Send our input, and the size of our terminal, in the background."""
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(_send_input(socket))] if stdin else []
    if tty:

        def resize() -> None:
            columns, lines = os.get_terminal_size(_INPUT)
            size = json.dumps({"Width": columns, "Height": lines}).encode()
            tasks.append(loop.create_task(socket.send_bytes(RESIZE + size)))

        loop.add_signal_handler(signal.SIGWINCH, resize)
        resize()
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


async def _send_input(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Send standard input to its end. A thread reads, because a loop cannot wait for a file, and waits for the command
    to take it."""
    loop, pieces = asyncio.get_running_loop(), asyncio.Queue[bytes]()
    room = threading.Semaphore(_MOST_PIECES)

    def read() -> None:
        data = b"-"
        with contextlib.suppress(OSError, RuntimeError):  # the loop may be closed meanwhile
            while data:
                room.acquire()
                data = os.read(_INPUT, 65536)
                loop.call_soon_threadsafe(pieces.put_nowait, data)

    threading.Thread(target=read, daemon=True, name="input").start()
    while data := await pieces.get():
        await socket.send_bytes(STDIN + data)
        room.release()
    if socket.protocol == _CLOSING_PROTOCOL:
        await socket.send_bytes(CLOSE + STDIN)


def _write(descriptor: int, data: bytes) -> None:
    """Write all of it now."""
    while data:
        data = data[os.write(descriptor, data) :]


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """Our terminal passes each key on, Ctrl-C too."""
    before = termios.tcgetattr(_INPUT)
    terminal.setraw(_INPUT)
    try:
        yield
    finally:
        termios.tcsetattr(_INPUT, termios.TCSADRAIN, before)
