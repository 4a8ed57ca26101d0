# SPDX-License-Identifier: Apache-2.0
"""Asks a supervisor for its `/status`, and takes no more from whoever answers there than a status can be.

What listens on the port is the tenant's. No redirect is followed, because the next address would be of its choice.
Nothing is unpacked, because 1.5 MB of gzip can hold 1 GB. Lines, fields and body of the answer have limits. The text is
UTF-8 whatever the answer calls itself. Connecting and answering each have a time limit of their own.
"""

import json
from typing import Any

import aiohttp
from yarl import URL

from dtjob.controller.stored_fields import deeper_than

LONGEST = 64 * 1024
"""Bytes of a body that are read at most."""
LONGEST_LINE = 8190
"""Bytes of a line of an answer's head."""
MOST_FIELDS = 64
"""Lines of an answer's head."""
DEEPEST = 8
"""Blocks within blocks that a status may have; contract.md has three."""
CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 3.0
"""From the beginning to the last byte of the answer."""

_HEADERS = {"User-Agent": "dtjob", "Accept": "application/json", "Accept-Encoding": "identity"}


class NoStatus(Exception):
    """There is no status to be had; the message says why, `reason` in one word for programs."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


async def read_status(
    host: str, port: int, connect_seconds: float = CONNECT_SECONDS, answer_seconds: float = ANSWER_SECONDS
) -> dict[str, Any]:
    """The `/status` (contract.md) of the supervisor at this address. Raises NoStatus and nothing else."""
    limits = aiohttp.ClientTimeout(total=answer_seconds, sock_connect=connect_seconds)
    try:
        url = URL.build(scheme="http", host=host, port=port, path="/status")
        async with _session(limits) as session, session.get(url, allow_redirects=False) as answer:
            return parse_report(await _body(answer))
    except aiohttp.ConnectionTimeoutError:
        raise NoStatus("ConnectTimeout", f"no connection within {connect_seconds:g} s") from None
    except TimeoutError:
        raise NoStatus("NoAnswer", f"connected, but no answer within {answer_seconds:g} s") from None
    except (aiohttp.ClientConnectorError, ValueError) as error:  # ValueError: an address or port that is none
        raise _no_connection(error) from None
    except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError):
        raise NoStatus("BadAnswer", "what answered does not speak HTTP") from None
    except (aiohttp.ClientError, OSError) as error:
        raise NoStatus("NoAnswer", f"connected, but the connection broke: {error}") from None


def _session(limits: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
    """A session for one question: each address is asked once in seconds, and no connection is kept meanwhile."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        timeout=limits,
        auto_decompress=False,
        read_bufsize=LONGEST,
        max_line_size=LONGEST_LINE,
        max_field_size=LONGEST_LINE,
        max_headers=MOST_FIELDS,
    )


def _no_connection(error: Exception) -> NoStatus:
    if isinstance(getattr(error, "os_error", None), ConnectionRefusedError):
        return NoStatus("ConnectionRefused", "the connection was refused")
    return NoStatus("NoConnection", f"no connection: {getattr(error, 'strerror', '') or error}")


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    """The body of an answer that says 200. Raises NoStatus for any other, and beyond LONGEST."""
    if answer.status != 200:
        raise NoStatus("BadAnswer", f"it answered with HTTP status {answer.status}")
    if answer.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise NoStatus("BadAnswer", "the answer is packed (Content-Encoding), which was not asked for")
    parts, length = [], 0
    async for more in answer.content.iter_any():
        length += len(more)
        if length > LONGEST:
            raise NoStatus("BadAnswer", f"the answer is longer than {LONGEST // 1024} KiB")
        parts.append(more)
    return b"".join(parts)


def parse_report(text: bytes | str) -> dict[str, Any]:
    """A status from its JSON. Raises NoStatus for what is none, or is nested more than DEEPEST deep."""
    try:
        report = json.loads(text if isinstance(text, str) else text.decode())
        too_deep = deeper_than(report, DEEPEST)
    except RecursionError:
        too_deep = True
    except ValueError:  # no UTF-8, no JSON, or a number of more digits than Python reads
        raise NoStatus("BadAnswer", "the answer is no JSON in UTF-8") from None
    if too_deep:
        raise NoStatus("BadAnswer", f"the answer is nested more than {DEEPEST} deep")
    if not isinstance(report, dict):
        raise NoStatus("BadAnswer", "the answer is no JSON object")
    return report
