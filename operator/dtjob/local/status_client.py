"""Asks the supervisors on this machine for their /status."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dtjob.local.addresses import HOST

TIMEOUT_SECONDS = 1.0
LONGEST = 1 << 20
_REQUEST = f"GET /status HTTP/1.0\r\nHost: {HOST}\r\n\r\n".encode()


async def read_status(port: int) -> dict[str, Any] | None:
    """The `/status` of the supervisor on this port (docs/contract.md); None where it does not answer."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            reader, writer = await asyncio.open_connection(HOST, port, limit=LONGEST)
            try:
                writer.write(_REQUEST)
                head, _, body = (await reader.read(LONGEST)).partition(b"\r\n\r\n")
                while more := await reader.read(LONGEST):
                    body += more
            finally:
                writer.close()
        report = json.loads(body) if b" 200 " in head.partition(b"\r\n")[0] else None
    except (OSError, ValueError):  # TimeoutError is an OSError
        return None
    return report if isinstance(report, dict) else None
