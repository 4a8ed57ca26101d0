# SPDX-License-Identifier: Apache-2.0
"""What a kubelet serves to the API server: logs of containers, commands in them, and ports of their pods."""

import asyncio
import contextlib
import json
import ssl
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

CHECKPOINTS = "/checkpoints"
"""The path in commands for which `directory` stands."""
_PROTOCOLS = ("v4.channel.k8s.io",)


class NodeStreams:
    """The server of one node, for every pod that is bound to it.

    - name: of the node.
    - directory: what its pods have mounted at /checkpoints. Commands run here, in a process.
    - logs: the lines of a pod, by its name.
    - ports: the port of this machine for a port of a pod.
    - refused: the ports of pods that somebody has asked for and that have none.
    """

    def __init__(self, cluster: ControlPlane, api: Api, node: str, directory: Path) -> None:
        self._cluster, self._api, self.name, self.directory = cluster, api, node, directory
        self.logs: dict[str, list[str]] = {}
        self.ports: dict[int, int] = {}
        self.refused: set[int] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner

    def __enter__(self) -> Self:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result()
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        self._api.patch("nodes", None, self.name, {"status": status}, "status")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _serve(self) -> int:
        app = web.Application()
        app.add_routes(
            [
                web.get("/containerLogs/{namespace}/{pod}/{container}", self._log),
                web.get("/exec/{namespace}/{pod}/{container}", self._exec),
                web.get("/portForward/{namespace}/{pod}", self._forward),
            ]
        )
        certificates = self._cluster.directory / "certificates"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        port: int = self._runner.addresses[0][1]
        return port

    async def _log(self, request: web.Request) -> web.Response:
        moment = "2026-11-27T06:00:00.000000000Z " if "timestamps" in request.query else ""
        return web.Response(text="".join(f"{moment}{line}\n" for line in self.logs[request.match_info["pod"]]))

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=_PROTOCOLS)
        await socket.prepare(request)
        _python, *words = (word.replace(CHECKPOINTS, str(self.directory)) for word in request.query.getall("command"))
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=pipe, stderr=pipe)
        out, err = await process.communicate()
        status: dict[str, Any] = {"status": "Success"}
        if process.returncode:
            causes = [{"reason": "ExitCode", "message": str(process.returncode)}]
            status = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
        for channel, data in ((b"\x01", out), (b"\x02", err), (b"\x03", json.dumps(status).encode())):
            await socket.send_bytes(channel + data)
        await socket.close()
        return socket

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=_PROTOCOLS)
        await socket.prepare(request)
        port = int(request.query["port"])
        for channel in (b"\x00", b"\x01"):
            await socket.send_bytes(channel + port.to_bytes(2, "little"))
        if port not in self.ports:
            self.refused.add(port)
            await socket.send_bytes(b"\x01dial tcp: connection refused")
            await socket.close()
            return socket
        reader, writer = await asyncio.open_connection("127.0.0.1", self.ports[port])
        async with _running(_carry_back(reader, socket)):
            async for message in socket:
                if isinstance(message.data, bytes):
                    writer.write(message.data[1:])
        writer.close()
        return socket


async def _carry_back(reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
    while data := await reader.read(65536):
        await socket.send_bytes(b"\x00" + data)
    await socket.close()


@contextlib.asynccontextmanager
async def _running(work: object) -> AsyncIterator[None]:
    task = asyncio.create_task(work)  # type: ignore[arg-type]
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await task
