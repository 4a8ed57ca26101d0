# SPDX-License-Identifier: Apache-2.0
"""Makes calls to an API server as fast as it takes them: prepared bodies, many at once, answers unread.

The parent side is `Calls`. The script itself is a process of its own, so that what it costs is nobody else's: it reads
its calls from a file, says `ready`, waits for a line on its input, makes the calls, and prints one JSON object.
"""

import argparse
import asyncio
import base64
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

AT_ONCE = 50
CONTENT_TYPES = {"POST": "application/json", "PATCH": "application/merge-patch+json", "DELETE": "application/json"}


@dataclass(frozen=True)
class Call:
    """One call: its path is relative to the server, without a slash before it."""

    method: str
    path: str
    body: dict[str, Any]


class Calls:
    """These calls, ready to be made by a process of their own."""

    def __init__(self, kubeconfig: Path, calls: Iterable[Call], file: Path, at_once: int = AT_ONCE) -> None:
        with file.open("w") as lines:
            for call in calls:
                lines.write(f"{call.method} {call.path} {json.dumps(call.body)}\n")
        command = [sys.executable, "-m", "benchmarks.peers.bare_loop", str(kubeconfig), str(file), str(at_once)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError("the bare loop did not come up")

    def go(self) -> None:
        """Begin."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def wait(self) -> float:
        """Wait until all were answered; the seconds that they took. Raises RuntimeError where one was refused."""
        output, _ = self._process.communicate()
        answer = json.loads(output or '{"refused": "nothing: it ended"}')
        if answer["refused"]:
            raise RuntimeError(f"the API server refused a call: {answer['refused']}")
        return float(answer["seconds"])


async def make(kubeconfig: str, lines: list[str], at_once: int) -> dict[str, Any]:
    """Wait for the word, then make the calls; how long they took, and what was refused first."""
    config = yaml.safe_load(kubeconfig)
    cluster, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
    trusted = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    calls = iter([line.split(" ", 2) for line in lines])
    refused = ""

    async def lane(session: aiohttp.ClientSession) -> None:
        nonlocal refused
        for method, path, body in calls:
            headers = {"Content-Type": CONTENT_TYPES[method]}
            url = f"{cluster['server']}/{path}"
            async with session.request(method, url, data=body.encode(), headers=headers) as answer:
                text = await answer.read()
                if is_refused(method, answer.status) and not refused:
                    refused = text.decode()

    connector = aiohttp.TCPConnector(limit=at_once, ssl=trusted)
    async with aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {token}"}) as session:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        began = time.monotonic()
        await asyncio.gather(*(lane(session) for _ in range(at_once)))
        return {"seconds": time.monotonic() - began, "refused": refused}


def is_refused(method: str, status: int) -> bool:
    """Whether an answer says that the call did not do what it should. What is to be patched may be gone: TFJob removes
    workers as soon as their chief has succeeded."""
    return status >= 300 and (method, status) != ("PATCH", 404)


def main() -> None:
    """Make the calls of a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("file", type=Path, help="a call on each line: method, path and body, with a space between them")
    parser.add_argument("at_once", type=int, nargs="?", default=AT_ONCE)
    options = parser.parse_args()
    lines = options.file.read_text().splitlines()
    print(json.dumps(asyncio.run(make(options.kubeconfig.read_text(), lines, options.at_once))))


if __name__ == "__main__":
    main()
