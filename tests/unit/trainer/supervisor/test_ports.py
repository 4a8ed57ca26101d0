# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.ports: what listens where; HTTP by hand, one event loop, no thread for a request."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from dtjob.local.processes.addresses import free_ports
from dtjob_trainer.contract.task import Task
from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.rendezvous.tails import LONGEST, Tails, send
from dtjob_trainer.supervisor.ports import (
    LONGEST_REQUEST,
    Server,
    listen,
    port_is_free,
    rendezvous_server,
    status_server,
)

REGISTRATION = Registration("uid", "hash", "worker-0", 0, "x", 0, "waiting")
BODY = json.dumps(REGISTRATION.to_json()).encode()
POST = b"POST /rendezvous HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(BODY)
Say = Callable[[Registration, str], Awaitable[Answer]]


async def say_go(_: Registration, __: str) -> Answer:
    return Answer("go", 1)


def server() -> Server:
    return status_server(lambda: {"task": "chief-0", "state": "training", "step": 4}, {"job_name": "digits"})


def rendezvous(say: Say = say_go) -> Server:
    return rendezvous_server(say)


@pytest.mark.parametrize(
    ("method", "path", "code", "words"),
    [
        ("GET", "/status", 200, '"step": 4'),
        ("GET", "/status?x=1", 200, '"step": 4'),
        ("GET", "/metrics", 200, 'dtjob_trainer_step{job_name="digits"} 4.0'),
        ("GET", "/healthz", 200, "ok"),
        ("HEAD", "/healthz", 200, "ok"),
        ("GET", "/", 404, "there is /status, /metrics and /healthz"),
        ("POST", "/status", 405, "only GET"),
    ],
)
async def test_the_status_port_serves_status_metrics_and_healthz(method: str, path: str, code: int, words: str) -> None:
    status, _, body = await server().respond(method, path, b"", "10.0.0.1")
    assert status == code
    assert words in body.decode()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"uid": 5}', b"\xff"])
async def test_a_registration_that_is_none_is_refused(body: bytes) -> None:
    assert (await rendezvous().respond("POST", "/rendezvous", body, "10.0.0.1"))[0] == 400


async def test_the_rendezvous_port_takes_registrations_and_logs_alone() -> None:
    code, _, answer = await rendezvous().respond("POST", "/rendezvous", BODY, "10.0.0.1")
    assert (code, Answer.from_json(json.loads(answer))) == (200, Answer("go", 1))
    assert (await rendezvous().respond("GET", "/rendezvous", b"", "10.0.0.1"))[0] == 405
    assert (await rendezvous().respond("GET", "/status", b"", "10.0.0.1"))[0] == 404
    taking = rendezvous_server(say_go, Tails("uid", 2).take)
    sent = json.dumps({"uid": "uid", "task": "worker-1", "attempt": 0, "lines": "worker-1.0 | a"}).encode()
    assert [(await taking.respond("POST", "/log", body, "10.0.0.1"))[0] for body in (sent, b"[]", b"[" * 9999)] == [
        200, 400, 400
    ]  # fmt: skip


@contextlib.asynccontextmanager
async def connected(served: Server) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    port = await served.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        assert served._server is not None
        served._server.close()


async def response(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """The first line and the body of the next response."""
    first, *headers = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    (length,) = (int(line.split(":")[1]) for line in headers if line.startswith("Content-Length"))
    return first, await reader.readexactly(length)


async def test_requests_on_one_connection_are_answered_in_turn() -> None:
    async with connected(server()) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\nGET /nothing HTTP/1.1\r\n\r\nGET /hea")
        assert await response(reader) == ("HTTP/1.1 200 OK", b"ok\n")
        assert (await response(reader))[0] == "HTTP/1.1 404 Not Found"
        writer.write(b"lthz HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert await response(reader) == ("HTTP/1.1 200 OK", b"ok\n")
        assert await reader.read() == b""


async def test_a_body_may_come_in_pieces() -> None:
    async with connected(rendezvous()) as (reader, writer):
        writer.write(POST + BODY[:9])
        await writer.drain()
        await asyncio.sleep(0.01)
        writer.write(BODY[9:])
        assert (await response(reader))[0] == "HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "request_",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: %s\r\n\r\n" % (b"9" * 5000),
    ],
    ids=["words", "negative", "long"],
)
async def test_bytes_that_are_no_request_get_400_and_the_connection_is_closed(request_: bytes) -> None:
    async with connected(server()) as (reader, writer):
        writer.write(request_)
        assert await response(reader) == ("HTTP/1.1 400 Bad Request", b"not a request\n")
        assert await reader.read() == b""


async def test_a_request_that_is_too_long_closes_the_connection() -> None:
    async with connected(server()) as (reader, writer):
        writer.write(b"x" * (LONGEST_REQUEST + 1))
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""


async def test_a_client_that_does_not_read_is_answered_no_further() -> None:
    """Else the answers would pile up in the memory of the supervisor."""
    asked, requests = [], 2000

    def status() -> dict[str, object]:
        asked.append(1)
        return {"model": "x" * LONGEST_REQUEST}

    async with connected(status_server(status, {})) as (reader, writer):
        writer.write(b"GET /status HTTP/1.1\r\n\r\n" * requests)
        for _ in range(4 * requests):
            await asyncio.sleep(0)
        for answered in range(requests):
            assert len(asked) - answered < requests / 2
            assert (await response(reader))[0] == "HTTP/1.1 200 OK"


def test_all_tasks_of_a_large_job_may_come_from_one_address() -> None:
    assert rendezvous_server(say_go, tasks=2).most_connections == 1000
    assert rendezvous_server(say_go, tasks=1500).most_connections == 3000


async def test_each_address_has_a_bounded_number_of_connections() -> None:
    answering = server()
    answering.most_connections = 3
    async with connected(answering) as (reader, writer):
        port = writer.get_extra_info("peername")[1]
        others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        with contextlib.suppress(ConnectionError):
            assert await others[2][0].read() == b"", "one too many"
        others[0][1].close()
        while True:  # until that is heard
            again, out = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                out.write(b"GET /healthz HTTP/1.1\r\n\r\n")
                assert await response(again) == ("HTTP/1.1 200 OK", b"ok\n")
                break
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert await response(reader) == ("HTTP/1.1 200 OK", b"ok\n")
        for _, one in (*others, (again, out)):
            one.close()


async def test_a_bug_in_one_answer_does_not_end_the_supervisor() -> None:
    async def fail(_: Registration, __: str) -> Answer:
        raise RuntimeError("a bug")

    async with connected(rendezvous(fail)) as (reader, writer):
        writer.write(POST + BODY)
        assert await response(reader) == ("HTTP/1.1 500 Internal Server Error", b"RuntimeError: a bug\n")
        writer.write(b"HEAD /nothing HTTP/1.1\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 404 Not Found")


async def test_a_client_that_goes_away_is_no_longer_answered() -> None:
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def hold(_: Registration, __: str) -> Answer:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError("unreachable")

    async with connected(rendezvous(hold)) as (_, writer):
        writer.write(POST + BODY)
        await asyncio.wait_for(asked.wait(), 30)
        writer.close()
        await asyncio.wait_for(cancelled.wait(), 30)


async def test_the_longest_tail_of_the_strangest_bytes_arrives() -> None:
    status, port = free_ports(2)
    task = Task(
        "job", "ns", "uid", "worker", 1, status_port=status, rendezvous=f"127.0.0.1:{port}", rendezvous_port=port,
        parent=os.getpid(),
    )  # fmt: skip
    tails = Tails("uid", 2)
    await listen(task, dict, say_go, tails.take)
    await asyncio.to_thread(send, task, b"\x00" * LONGEST)
    assert tails.text() == b"\x00" * LONGEST
    with pytest.raises(OSError, match="answered 400"):
        await asyncio.to_thread(send, task, b"\x00" * (LONGEST + 1))


def test_a_port_is_free_once_its_listener_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not port_is_free(port)
    assert port_is_free(port)


def test_connections_that_linger_do_not_matter() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()  # the end that closes first stays in TIME_WAIT
    assert port_is_free(port)
