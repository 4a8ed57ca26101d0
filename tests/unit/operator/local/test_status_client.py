from __future__ import annotations

import asyncio

import pytest

from dtjob.local.addresses import free_ports
from dtjob.local.status_client import read_status


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'HTTP/1.1 200 OK\r\n\r\n{"task": "chief-0"}', {"task": "chief-0"}),
        (b"HTTP/1.1 404 Not Found\r\n\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\n\r\nno JSON", None),
        (b"HTTP/1.1 200 OK\r\n\r\n[1]", None),
        (b"", None),
    ],
)
async def test_only_a_status_is_one(answer, expected):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    (port,) = free_ports(1)
    async with await asyncio.start_server(serve, "127.0.0.1", port):
        assert await read_status(port) == expected


async def test_nobody_there_is_no_status():
    (port,) = free_ports(1)
    assert await read_status(port) is None
