# SPDX-License-Identifier: Apache-2.0
"""Reading a status from whoever listens on the tenant's port: real servers on loopback, most of them hostile."""

import asyncio
import gzip
import tracemalloc

import pytest

from dtjob.controller.stored_fields import deeper_than
from dtjob.local.processes.addresses import free_ports
from dtjob.status_client import DEEPEST, LONGEST, NoStatus, parse_report, read_status
from tests.unit.operator.answering import Serve, saying, serving


def ok(body: bytes, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def refusal(serve: Serve, **limits: float) -> NoStatus:
    async with serving(serve) as port:
        with pytest.raises(NoStatus) as raised:
            await read_status("127.0.0.1", port, **limits)
    return raised.value


@pytest.mark.parametrize(
    "answer",
    [
        ok(b'{"task": "chief-0"}'),
        ok(b'{"task": "chief-0"}', "Content-Type: application/json; charset=utf-16"),
        ok(b'{"task": "chief-0"}', "Content-Type: application/json; charset=no-such-charset"),
        b'HTTP/1.1 200 OK\r\n\r\n{"task": "chief-0"}',
        b'HTTP/1.0 200 OK\r\n\r\n{"task": "chief-0"}',
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n13\r\n{"task": "chief-0"}\r\n0\r\n\r\n',
    ],
    ids=["as ours", "another charset", "no charset", "to the end", "HTTP/1.0", "in chunks"],
)
async def test_a_status_is_read(answer: bytes) -> None:
    async with serving(saying(answer)) as port:
        assert await read_status("127.0.0.1", port) == {"task": "chief-0"}


async def test_an_answer_ends_where_it_says_though_the_connection_stays_open() -> None:
    """As a proxy beside the supervisor leaves it."""

    async def keeping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ok(b'{"task": "chief-0"}', "Connection: keep-alive"))
        await reader.read()

    async with serving(keeping) as port:
        assert await read_status("127.0.0.1", port) == {"task": "chief-0"}


async def test_the_request_is_a_get_of_status_without_compression_that_closes() -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ok(b"{}"))

    async with serving(serve) as port:
        await read_status("127.0.0.1", port)
    assert asked[0].startswith(b"GET /status HTTP/1.1\r\n")
    assert b"\r\nAccept-Encoding: identity\r\n" in asked[0]
    assert b"\r\nConnection: close\r\n" in asked[0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n{}", "HTTP status 404"),
        (ok(b"no JSON"), "no JSON in UTF-8"),
        (ok(b"\xff\xfe{\x00}\x00"), "no JSON in UTF-8"),
        (ok(b"1" * 5000), "no JSON in UTF-8"),
        (ok(b"[1]"), "no JSON object"),
        (ok(b'{"a":' * 5000 + b"1" + b"}" * 5000), "nested more than 8 deep"),
        (ok(b'{"a":' * 9 + b"1" + b"}" * 9), "nested more than 8 deep"),
        (ok(b"[" * 30000 + b"]" * 30000), ""),
        (ok(gzip.compress(b"{}", mtime=0), "Content-Encoding: gzip"), "packed (Content-Encoding)"),
        (b"", "does not speak HTTP"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 9000 + b"\r\n{}", "does not speak HTTP"),
    ],
)
async def test_an_answer_that_is_no_json_object_is_a_bad_answer(answer: bytes, words: str) -> None:
    found = await refusal(saying(answer))
    assert (found.reason, words in str(found)) == ("BadAnswer", True), str(found)


async def test_no_redirect_is_followed() -> None:
    """The next address would be of the tenant's choice, and the question come from the operator's network."""
    visited: list[bytes] = []

    async def inner(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visited.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ok(b"{}"))

    async with serving(inner) as port:
        moved = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/secret\r\n\r\n".encode()
        assert "HTTP status 302" in str(await refusal(saying(moved)))
    assert visited == []


@pytest.mark.parametrize(
    ("head", "more", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n{", b" ", "longer than 64 KiB"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n{", b" ", "longer than 64 KiB"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", "does not speak HTTP"),
        (b"", b" ", "does not speak HTTP"),
    ],
    ids=["a body", "a long body", "a header", "headers", "a first line"],
)
async def test_no_more_is_read_than_a_status_can_be(head: bytes, more: bytes, words: str) -> None:
    """Parts of an answer that never end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        while True:
            writer.write(more * (65536 // len(more)))
            await writer.drain()

    tracemalloc.start()
    try:
        found = await refusal(serve)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert words in str(found)
    assert most < 40 * LONGEST, f"{most} bytes"


async def test_a_bomb_is_not_unpacked() -> None:
    """As a server may not have been asked and pack it all the same."""
    bomb = gzip.compress(b'{"a": "' + b" " * 50_000_000 + b'"}')
    assert len(bomb) < LONGEST
    tracemalloc.start()
    try:
        found = await refusal(saying(ok(bomb, "Content-Encoding: gzip", "Content-Type: application/json")))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "packed" in str(found)
    assert most < 40 * LONGEST, f"{most} bytes"


async def test_no_answer_and_a_refused_connection_have_different_reasons() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" ")
            await asyncio.sleep(0.01)

    for serve in silent, dripping:
        found = await refusal(serve, answer_seconds=0.2)
        assert (found.reason, "connected, but no answer" in str(found)) == ("NoAnswer", True)
    (port,) = free_ports(1)
    with pytest.raises(NoStatus, match="refused") as raised:
        await read_status("127.0.0.1", port)
    assert raised.value.reason == "ConnectionRefused"
    for address in ("no address", "127.0.0.1\r\n", ""):
        with pytest.raises(NoStatus):
            await read_status(address, port if address else 0)


def test_depth_is_counted_without_recursion() -> None:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    assert deeper_than(value, 99_999)
    assert not deeper_than(value, 100_000)
    assert not deeper_than({"a": {"b": [1]}}, 3)
    assert deeper_than({"a": {"b": [1]}}, 2)
    assert not deeper_than(1, 0)


def test_a_report_may_be_as_deep_as_is_said() -> None:
    text = '{"a":' * DEEPEST + "1" + "}" * DEEPEST
    assert parse_report(text)["a"]
