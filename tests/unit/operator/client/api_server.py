# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an API server: it answers what a test says, and keeps what it was asked."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

Answer = tuple[int, Any]


@dataclass(frozen=True)
class Fault:
    """One answer of a plan that is no good one. `code` 0: the connection is reset. `broken`: it is reset after so much
    of an answer, or, with `hold`, when the server closes."""

    code: int = 0
    retry_after: str | None = None
    message: str = "the server is currently unable to handle the request"
    broken: bytes = b""
    hold: bool = False


class _Server(ThreadingHTTPServer):
    connections = 0

    def process_request(self, *request: Any) -> None:
        self.connections += 1
        super().process_request(*request)

    def handle_error(self, *_: Any) -> None:
        """A client that ends a watch resets its connection."""


class ApiServer:
    """Answers by method (WATCH for a watch) and path without its query: an object, text as bytes, lines as a list, or a
    Fault. `tokens`: others are answered with 401."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.heads: list[Message] = []
        self.tokens: set[str] | None = None
        self.closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.heads.append(self.headers)
                outer.asked.append((self.command, self.path, json.loads(body) if body else None))
                path, _, query = self.path.partition("?")
                method = "WATCH" if "watch=true" in query else self.command
                waiting = outer.answers.get(f"{method} {path}", [])
                code, found = (waiting.pop(0) if len(waiting) > 1 else waiting[0]) if waiting else (404, _MISSING)
                fault = found if isinstance(found, Fault) else None
                token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
                if outer.tokens is not None and token not in outer.tokens:
                    fault = Fault(401, message="Unauthorized")
                if fault is not None and not fault.code:
                    if fault.broken:
                        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + fault.broken)
                    if fault.hold:
                        self.wfile.flush()
                        outer.closing.wait(30)
                    self.close_connection = True
                    return
                if fault is not None:
                    code, found = (
                        fault.code,
                        {"message": fault.message, "reason": "NotFound" if fault.code == 404 else ""},
                    )
                if isinstance(found, list):
                    text = b"".join(json.dumps(line).encode() + b"\n" for line in found)
                else:
                    text = found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                if fault is not None and fault.retry_after is not None:
                    self.send_header("Retry-After", fault.retry_after)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Nothing is printed."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def connections(self) -> int:
        """How many there were."""
        return self._server.connections

    def answer(self, request: str, *answers: Any, code: int = 200) -> None:
        """Answer `GET /path` with these, one after the other. The last one stays."""
        self.answers[request] = [(code, one) for one in answers]

    def kubeconfig(self, directory: Path, **user: Any) -> Path:
        """A kubeconfig that leads here."""
        file = directory / "kubeconfig"
        file.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"name": "c", "cluster": {"server": self.url}}],
                    "users": [{"name": "u", "user": user}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
                    "current-context": "x",
                }
            )
        )
        return file

    def close(self) -> None:
        """Answer no more."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


_MISSING = {"kind": "Status", "reason": "NotFound", "message": 'pods "x" not found'}


def serving() -> Iterator[ApiServer]:
    """For a fixture."""
    server = ApiServer()
    yield server
    server.close()
