# SPDX-License-Identifier: Apache-2.0
"""An API server as the operator sees it, between the operator and the real one: calls that fail, and moments to kill.

    with ApiProxy(cluster.kubeconfig, tmp_path) as proxy:
        proxy.rule = lambda call: 503 if call.resource == "podgroups" else None
        operator = OperatorProcess(proxy.kubeconfig, namespace, ...)

What no rule takes goes to the real API server as it is, watches too.
"""

import asyncio
import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from dtjob.kube.calls.kinds import resource_of
from dtjob.kube.watching.handlers import LIST_CHUNK
from dtjob.local.processes.addresses import free_ports

_HOP = {"connection", "host", "keep-alive", "transfer-encoding", "content-length", "te", "upgrade"}
"""Headers that are between two ends of a connection."""


@dataclass(frozen=True)
class Call:
    """One call of the operator's."""

    method: str
    path: str
    query: str
    body: dict[str, Any] | None

    @property
    def resource(self) -> str:
        """The plural, and the subresource where there is one."""
        return resource_of(self.path)

    @property
    def by_kopf(self) -> bool:
        """Whether a watch of kopf's makes it, or the LIST before one (in pages of its own size)."""
        return "watch=" in self.query or f"limit={LIST_CHUNK}" in self.query

    @property
    def name(self) -> str:
        """The object's name, be it in the body or in the path."""
        named = ((self.body or {}).get("metadata") or {}).get("name")
        last = self.path.removesuffix("/status").rpartition("/")[2]
        return str(named or last)


Rule = Callable[[Call], "int | Callable[[], None] | Lost | None"]
"""What becomes of a call: an HTTP status that it is answered with; something to be done in its place, with no answer
(such as to kill who called); `Lost`; or None: it goes through. Called from one thread, call by call."""


@dataclass(frozen=True)
class Lost:
    """The call goes through, then this is done, and its answer reaches nobody."""

    then: Callable[[], None]


class ApiProxy:
    """Attributes: `kubeconfig`, for the operator; `rule`; `calls`, all that came, with the status of their answers."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self.rule: Rule = lambda call: None
        self.calls: list[tuple[Call, int]] = []
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster.pop("certificate-authority-data")).decode()
        self._trusted = ssl.create_default_context(cadata=authority)
        self._server = cluster["server"]
        (self._port,) = free_ports(1)
        cluster["server"] = f"http://127.0.0.1:{self._port}"
        self.kubeconfig = directory / "through-proxy.kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(config))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._listens, self._stop = threading.Event(), asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listens.wait(30), "the proxy does not listen"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)

    def count(self, resource: str, method: str = "GET") -> int:
        """How many calls of this kind have come so far."""
        return sum((call.resource, call.method) == (resource, method) for call, _ in self.calls)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        connector = TCPConnector(ssl=self._trusted, limit=0)
        async with ClientSession(connector=connector, auto_decompress=False) as self._session:
            application = web.Application(client_max_size=64 * 1024**2)
            application.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", self._port).start()
            self._listens.set()
            await self._stop.wait()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        content = await request.read()
        call = Call(request.method, request.path, request.query_string, json.loads(content) if content else None)
        verdict = self.rule(call)
        if isinstance(verdict, int):
            self.calls.append((call, verdict))
            status = {"kind": "Status", "status": "Failure", "code": verdict, "message": "the test says so"}
            return web.json_response(status, status=verdict)
        if verdict is not None and not isinstance(verdict, Lost):
            return await self._unanswered(request, call, verdict)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        async with self._session.request(
            call.method,
            f"{self._server}{request.raw_path}",
            data=content or None,
            headers=headers,
            timeout=ClientTimeout(total=None),
        ) as answer:
            self.calls.append((call, answer.status))
            if verdict is not None:
                await answer.read()
                return await self._unanswered(request, call, verdict.then)
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):  # who called was killed
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
            return response

    async def _unanswered(self, request: web.Request, call: Call, do: Callable[[], None]) -> web.StreamResponse:
        """Do it, which may take a while, and end the connection."""
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, do))
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)
