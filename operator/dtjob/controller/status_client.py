"""Asks a supervisor for its `/status`, and takes no more from whoever answers there than a status can be.

What listens on the port is the tenant's: no redirect is followed (the next address would be of its choice), nothing is
unpacked (1.5 MB of gzip can hold 1 GB), head and body together have at most `LONGEST` bytes, the text is UTF-8 whatever
the answer calls itself, and connecting and answering each have a time of their own.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import json
from typing import Any

from dtjob.controller.nesting import deeper_than

LONGEST = 64 * 1024
"""Bytes of an answer, head and body, that are read at most."""
DEEPEST = 8
"""Blocks within blocks that a status may have; docs/contract.md has three."""
CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 3.0
"""From the question to the last byte of the answer."""


class NoStatus(Exception):
    """There is no status to be had; the message says why, `reason` in one word for programs."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


async def read_status(
    host: str, port: int, connect_seconds: float = CONNECT_SECONDS, answer_seconds: float = ANSWER_SECONDS
) -> dict[str, Any]:
    """The `/status` (docs/contract.md) of the supervisor at this address. Raises NoStatus and nothing else."""
    try:
        async with asyncio.timeout(connect_seconds):
            reader, writer = await asyncio.open_connection(host, port, limit=LONGEST)
    except TimeoutError:
        raise NoStatus("ConnectTimeout", f"no connection within {connect_seconds:g} s") from None
    except (OSError, ValueError) as error:  # ValueError: an address or port that is none
        refused = isinstance(error, ConnectionRefusedError)
        words = "the connection was refused" if refused else f"no connection: {getattr(error, 'strerror', '') or error}"
        raise NoStatus("ConnectionRefused" if refused else "NoConnection", words) from None
    try:
        async with asyncio.timeout(answer_seconds):
            writer.write(_request(host, port))
            answer = await _read(reader)
    except TimeoutError:
        raise NoStatus("NoAnswer", f"connected, but no answer within {answer_seconds:g} s") from None
    except (OSError, ValueError) as error:
        raise NoStatus("NoAnswer", f"connected, but the connection broke: {error}") from None
    finally:
        writer.transport.abort()
    return parse_report(body_of(answer))


def _request(host: str, port: int) -> bytes:
    name = f"[{host}]" if ":" in host else host
    return (
        f"GET /status HTTP/1.1\r\nHost: {name}:{port}\r\nUser-Agent: dtjob\r\nAccept: application/json\r\n"
        "Accept-Encoding: identity\r\nConnection: close\r\n\r\n"
    ).encode()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """All until the other end closes, which it was asked to. Raises NoStatus beyond LONGEST."""
    parts, length = [], 0
    while more := await reader.read(LONGEST):
        length += len(more)
        if length > LONGEST:
            raise NoStatus("BadAnswer", f"the answer is longer than {LONGEST // 1024} KiB")
        parts.append(more)
    return b"".join(parts)


def body_of(answer: bytes) -> bytes:
    """The body of an HTTP answer that says 200. Raises NoStatus for any other."""
    response = http.client.HTTPResponse(_Received(answer))  # type: ignore[arg-type]  # it only asks for makefile
    try:
        response.begin()
        if response.status != 200:
            raise NoStatus("BadAnswer", f"it answered with HTTP status {response.status}")
        if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise NoStatus("BadAnswer", "the answer is packed (Content-Encoding), which was not asked for")
        return response.read()
    except (http.client.HTTPException, ValueError, OSError):
        raise NoStatus("BadAnswer", "what answered does not speak HTTP") from None


class _Received:
    """What was received, as the socket from which http.client reads it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        """The file to read from."""
        return io.BytesIO(self._data)


def parse_report(text: bytes | str) -> dict[str, Any]:
    """A status from its JSON. Raises NoStatus for what is none, or is nested more than DEEPEST deep."""
    try:
        report = json.loads(text if isinstance(text, str) else text.decode())
    except RecursionError:
        report = _TOO_DEEP
    except ValueError:  # no UTF-8, no JSON, or a number of more digits than Python reads
        raise NoStatus("BadAnswer", "the answer is no JSON in UTF-8") from None
    if not isinstance(report, dict):
        raise NoStatus("BadAnswer", "the answer is no JSON object")
    if report is _TOO_DEEP or deeper_than(report, DEEPEST):
        raise NoStatus("BadAnswer", f"the answer is nested more than {DEEPEST} deep")
    return report


_TOO_DEEP: dict[str, Any] = {}
