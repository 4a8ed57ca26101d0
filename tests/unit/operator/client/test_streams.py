# SPDX-License-Identifier: Apache-2.0
"""Commands in pods and forwarded ports, against a stand-in that speaks the protocol of a kubelet."""

import asyncio
import json
import signal
import threading
from collections.abc import Iterator

import pytest
from aiohttp import WSMsgType, web

from dtjob.client.cluster import Cluster
from dtjob.client.connection import Connection
from dtjob.client.errors import NotReached, Refused
from dtjob.client.kubeconfig import Access
from dtjob.client.streams import CommandFailed, answer, forward, run_in_pod
from tests.unit.operator.client.stand_in import answering
from tests.unit.operator.client.verbs.jobs import PODS


async def _exec(request: web.Request) -> web.StreamResponse:
    if request.headers["Authorization"] != "Bearer secret":
        return web.json_response({"kind": "Status", "message": "Unauthorized"}, status=401)
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    command = request.query.getall("command")
    await socket.send_bytes(b"\x01")
    await socket.send_bytes(b"\x01" + " ".join(command).encode())
    if command[0] == "fail":
        said = b"one\nno such file\n" if command[1:] != ["with a long line"] else 100_000 * b"a" + b"end"
        await socket.send_bytes(b"\x02" + said)
        await socket.send_bytes(b"\x03" + json.dumps({"status": "Failure", "message": "exit code 1"}).encode())
    elif command[0] == "wait":
        async for _ in socket:
            """It ends with the client."""
    else:
        await socket.send_bytes(b"\x03" + json.dumps({"status": "Success"}).encode())
    await socket.close()
    return socket


async def _forward(request: web.Request) -> web.StreamResponse:
    """An echo in capital letters. Each channel begins with the port."""
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    port = int(request.query["ports"]).to_bytes(2, "little")
    await socket.send_bytes(b"\x00" + port)
    await socket.send_bytes(b"\x01" + port)
    async for message in socket:
        if message.type is WSMsgType.BINARY:
            await socket.send_bytes(b"\x00" + message.data[1:].upper())
    return socket


async def _report(request: web.Request) -> web.StreamResponse:
    """What listens at the port of the pod: 1 answers, 2 says that there is no such page, 3 nothing, 4 has no end."""
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    port = int(request.query["ports"])
    for channel in (b"\x00", b"\x01"):
        await socket.send_bytes(channel + port.to_bytes(2, "little"))
    if port == 3:
        await socket.send_bytes(b"\x01connection\nrefused")
        await socket.close()
        return socket
    asked = (await socket.receive_bytes())[1:]
    assert asked.startswith(b"GET /status HTTP/1.0\r\n")
    code = {1: b"200 OK", 2: b"404 Not Found", 4: b"200 OK"}[port]
    await socket.send_bytes(b"\x00HTTP/1.1 " + code + b"\r\nContent-Length: 6\r\n\r\nabc")
    await socket.send_bytes(b"\x00def")
    if port == 4:
        async for _ in socket:
            """Nothing more comes until the client ends it."""
    await socket.close()
    return socket


async def _forbid(_: web.Request) -> web.Response:
    return web.json_response({"kind": "Status", "message": "pods/exec is forbidden"}, status=403)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    handlers = {"a/exec": _exec, "a/portforward": _forward, "c/portforward": _report, "forbidden/exec": _forbid}
    with answering({f"{PODS}/{path}": handler for path, handler in handlers.items()}) as url:
        yield Cluster(Connection(Access(url, None, lambda: "Bearer secret", "team")), "team")


def test_the_output_of_a_command_comes_in_pieces(cluster: Cluster) -> None:
    said = bytearray()
    run_in_pod(cluster, "a", "helper", ["python3", "-c", "print('a b & c')"], said.extend)
    assert said.decode() == "python3 -c print('a b & c')"


async def test_a_command_runs_in_a_notebook_too(cluster: Cluster) -> None:
    """Its thread runs a loop already."""
    said = bytearray()
    run_in_pod(cluster, "a", "helper", ["true"], said.extend)
    assert said == b"true"


async def test_ctrl_c_ends_a_command_in_a_notebook_at_once(cluster: Cluster) -> None:
    def interrupt(_: bytes) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # as a notebook has it
    try:
        with pytest.raises(KeyboardInterrupt):
            run_in_pod(cluster, "a", "helper", ["wait"], interrupt)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_full_disk_is_no_broken_connection_to_the_pod(cluster: Cluster) -> None:
    def full(_: bytes) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        run_in_pod(cluster, "a", "helper", ["true"], full)


def test_a_credential_that_has_expired_is_renewed_once(cluster: Cluster) -> None:
    tokens, said = ["Bearer old", "Bearer secret"], bytearray()

    def renewed(refused: str | None) -> bool:
        return tokens.pop(0) == refused

    old = cluster.connection.access
    access = Access(old.server, None, lambda: tokens[0], "team", renewed=renewed)
    run_in_pod(Cluster(Connection(access), "team"), "a", "helper", ["true"], said.extend)
    assert said == b"true"
    access = Access(old.server, None, lambda: "Bearer old", "team")
    with pytest.raises(Refused, match="log in again"):
        run_in_pod(Cluster(Connection(access), "team"), "a", "helper", ["true"], said.extend)


@pytest.mark.parametrize(("words", "said"), [(["fail"], "no such file"), (["fail", "with a long line"], "a{4093}end")])
def test_a_command_that_fails_says_at_most_4_kib_of_its_last_line(
    cluster: Cluster, words: list[str], said: str
) -> None:
    with pytest.raises(CommandFailed, match=f"^{said}$"):
        run_in_pod(cluster, "a", "helper", words, bytearray().extend)


@pytest.mark.parametrize(("pod", "said"), [("b", "it is not there"), ("forbidden", "you may not open one")])
def test_a_pod_that_cannot_be_reached_is_an_error(cluster: Cluster, pod: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        run_in_pod(cluster, pod, "helper", ["true"], bytearray().extend)


async def test_a_port_is_forwarded_until_it_is_cancelled(cluster: Cluster) -> None:
    at: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def ready(port: int) -> None:
        at.set_result(port)

    task = asyncio.create_task(forward(cluster, "a", 6006, 0, ready))
    reader, writer = await asyncio.open_connection("127.0.0.1", await at)
    writer.write(b"hello")
    assert await reader.readexactly(5) == b"HELLO"
    writer.close()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("port", [1, 4])
async def test_a_port_of_a_pod_answers(cluster: Cluster, port: int) -> None:
    assert await answer(cluster, "c", port, "/status") == b"abcdef"


@pytest.mark.parametrize(("port", "said"), [(2, "answers 404 Not Found"), (3, "broke: connection refused")])
async def test_a_port_that_does_not_answer_is_an_error(cluster: Cluster, port: int, said: str) -> None:
    with pytest.raises(NotReached, match=said):
        await answer(cluster, "c", port, "/status")
