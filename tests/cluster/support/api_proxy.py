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
import struct
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from types import TracebackType
from typing import Any, Literal, Self

import yaml
from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector, web
from yarl import URL

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


@dataclass(frozen=True)
class Answer:
    """The API server's answer to a call that it does not carry out. `retry_after`: in seconds; 0: it does not say."""

    status: int
    reason: str = ""
    retry_after: int = 0


@dataclass(frozen=True)
class Lost:
    """The call goes through, then this is done, and its answer reaches nobody."""

    then: Callable[[], None]


@dataclass(frozen=True)
class Hangs:
    """The call goes through, and no answer comes as long as the caller waits."""


@dataclass(frozen=True)
class AsOf:
    """A LIST is answered with what there was at this resourceVersion."""

    version: str


@dataclass
class Watched:
    """A watch that is counted: `events` have passed. After `whole` of them it is `cut` in the middle of the next one,
    or `silent` from then on, or it ends with the error that its version has `expired`."""

    whole: int | None = None
    then: Literal["cut", "silent", "expired"] = "cut"
    events: int = 0
    struck: bool = False
    """Whether an event has come after `whole` of them, so that this has happened."""


Verdict = int | Answer | Callable[[], None] | Lost | Hangs | AsOf | Watched | None
"""What becomes of a call: an HTTP status that it is answered with, or a whole `Answer`; something to be done in its
place, with no answer (such as to kill who called); one of the others; or None: it goes through."""
Rule = Callable[[Call], Verdict]
"""Called from one thread, call by call."""


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
            verdict = Answer(verdict)
        if isinstance(verdict, Answer):
            self.calls.append((call, verdict.status))
            said = {"Retry-After": str(verdict.retry_after)} if verdict.retry_after else {}
            return web.json_response(_status(verdict), status=verdict.status, headers=said)
        if callable(verdict):
            return await self._unanswered(request, verdict)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        as_of = f"&resourceVersion={verdict.version}&resourceVersionMatch=Exact" if isinstance(verdict, AsOf) else ""
        url = URL(f"{self._server}{request.raw_path}{as_of}", encoded=True)
        sent = self._session.request(
            call.method, url, data=content or None, headers=headers, timeout=ClientTimeout(total=None)
        )
        if call.method != "GET" or isinstance(verdict, Lost | Hangs):
            # A change is noted also where the caller gives up meanwhile: the API server carries it out all the same.
            response = await asyncio.shield(asyncio.ensure_future(self._whole(call, sent)))
            if isinstance(verdict, Lost):
                return await self._unanswered(request, verdict.then)
            if isinstance(verdict, Hangs):
                await asyncio.Event().wait()
            return response
        async with sent as answer:
            self.calls.append((call, answer.status))
            streamed = web.StreamResponse(status=answer.status, headers=_kept(answer))
            await streamed.prepare(request)
            with contextlib.suppress(ConnectionError):  # who called was killed
                if isinstance(verdict, Watched):
                    await self._pass_events(request, answer, streamed, verdict)
                else:
                    async for chunk in answer.content.iter_any():
                        await streamed.write(chunk)
                await streamed.write_eof()
            return streamed

    async def _whole(self, call: Call, sent: AbstractAsyncContextManager[ClientResponse]) -> web.Response:
        """The whole answer to this call, which is noted."""
        async with sent as answer:
            self.calls.append((call, answer.status))
            return web.Response(status=answer.status, headers=_kept(answer), body=await answer.read())

    async def _pass_events(
        self, request: web.Request, answer: ClientResponse, response: web.StreamResponse, watched: Watched
    ) -> None:
        """Pass the events of a watch on, as far as `watched` says."""
        rest = b""
        async for chunk in answer.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                watched.struck = watched.events == watched.whole
                if not watched.struck:
                    watched.events += 1
                    await response.write(line + b"\n")
                elif watched.then == "cut":
                    await response.write(line[: len(line) // 2])
                    _reset(request)
                    raise ConnectionResetError
                elif watched.then == "silent":
                    await asyncio.Event().wait()
                else:
                    status = _status(Answer(410, "Expired"))
                    await response.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
                    return

    async def _unanswered(self, request: web.Request, do: Callable[[], None]) -> web.StreamResponse:
        """Do it, which may take a while, and reset the connection."""
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, do))
        _reset(request)
        return web.Response(status=500)


def _kept(answer: ClientResponse) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}


def _status(answer: Answer) -> dict[str, Any]:
    """The body of this answer."""
    said = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "the test says so"}
    return {**said, "code": answer.status, "reason": answer.reason}


def _reset(request: web.Request) -> None:
    """End the connection at once: what was sent and is not read yet is lost, and who reads gets ECONNRESET."""
    if request.transport is not None:
        request.transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()
