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
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import aiohttp

from dtjob.api.names import KIND, TRAINING_CONTAINER
from dtjob.client.cluster import Cluster
from dtjob.client.errors import NotReached, Refused
from dtjob.client.streams import PROTOCOL, STDERR, STDOUT, CommandFailed, executed
from dtjob.client.verbs.pods import check_task, container_state, in_order, newest, selector

STDIN, RESIZE, CLOSE = b"\x00", b"\x04", b"\xff"
"""What messages to the container begin with."""
_CLOSING_PROTOCOL = "v5.channel.k8s.io"
"""The protocol in which one end of a stream can be closed (KEP 4006). Without it no command sees the end of its input.
It is asked for only if that is needed."""
_INPUT = 0
"""The file descriptor of standard input."""
_MOST_PIECES = 16
"""Pieces of the input that are held while the command does not read them."""


def run_in_task(
    cluster: Cluster,
    job: str,
    task: str | None,
    container: str | None,
    command: Sequence[str],
    *,
    stdin: bool = False,
    tty: bool = False,
) -> int:
    """Run the command in the pod of a task, by default in that of the chief task. Returns its exit code.

    `stdin`: the command reads our standard input. `tty`: that is a terminal, and the command gets one too. Raises
    BadInput on what is no task, Refused if the pod does not run, and ClientError.
    """
    check_task(task)
    cluster.get(KIND, job)
    pods = newest(in_order(cluster.list("Pod", selector(job)), task))
    running = [pod for pod in (pods if task else pods[:1]) if container_state(pod)[0] == "running"]
    if not running:
        what = f"no pod of {task} runs" if task else "the pod of its first task does not run"
        raise Refused(f"{job}: {what}; dtjob status {job} says why")
    name = str(running[0]["metadata"]["name"])
    streams = ["stdout", *(["stdin"] if stdin else []), "tty" if tty else "stderr"]
    takers = {STDOUT: partial(_write, sys.stdout.buffer.fileno()), STDERR: partial(_write, sys.stderr.buffer.fileno())}
    protocols = (_CLOSING_PROTOCOL, PROTOCOL) if stdin and not tty else (PROTOCOL,)
    sending = partial(_sending, stdin=stdin, tty=tty)
    container = container or TRAINING_CONTAINER
    with _raw() if tty else contextlib.nullcontext():
        ended = asyncio.run(executed(cluster, name, container, command, streams, takers, protocols, sending))
    return exit_code(ended)


def exit_code(ended: Mapping[str, Any]) -> int:
    """The exit code in the status of a command's end. Raises ClientError if it has none."""
    if not ended:
        raise NotReached("the connection to the pod broke")
    if ended.get("status") == "Success":
        return 0
    for cause in (ended.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise CommandFailed(" ".join(str(ended.get("message") or "the command could not be run").split()))


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
