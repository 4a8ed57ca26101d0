# SPDX-License-Identifier: Apache-2.0
"""The web server of the page: on loopback, for GET only, and for whoever has its address.

A secret in the path keeps other users of the machine out. The name in `Host` is checked, so that no page of the web
reads this one under a name of its own (DNS rebinding). The browser loads nothing from elsewhere and runs no script but
the files of the page (Content-Security-Policy).
"""

import asyncio
import contextlib
import json
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from dtjob.bad_input import BadInput
from dtjob.client.errors import ClientError
from dtjob.manifests.manifest_yaml import written
from dtjob.ui.hub import Key
from dtjob.ui.source import Source, View
from dtjob.ui.views import detail, shown_manifest

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
TYPES = {
    "index.html": "text/html",
    "main.js": "text/javascript",
    "list.js": "text/javascript",
    "job.js": "text/javascript",
    "charts.js": "text/javascript",
    "dom.js": "text/javascript",
    "uPlot.iife.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
    "page.css": "text/css",
    "icon.svg": "image/svg+xml",
}
"""The files of the page."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
LOOK_SECONDS = 0.5
"""Between two looks at what is new."""
QUIET_SECONDS = 10.0
"""After which a browser to which nothing was sent gets an empty comment, to find out whether it is there."""
_SOURCE, _CLOSING = web.AppKey("source", Source), web.AppKey("closing", threading.Event)


def application(source: Source, secret: str, closing: threading.Event) -> web.Application:
    """The application. `closing`: set to end all streams."""
    app = web.Application(middlewares=[_only_here])
    app[_SOURCE], app[_CLOSING] = source, closing
    for path, handler in (
        ("", _file),
        ("{file}", _file),
        ("events/jobs", _jobs),
        ("events/jobs/{namespace}/{name}", _job),
        ("jobs/{namespace}/{name}.yaml", _manifest),
    ):
        app.router.add_get(f"/{secret}/{path}", handler, allow_head=False)
    app.on_response_prepare.append(_with_headers)
    return app


@contextlib.contextmanager
def serving(source: Source, port: int = 0) -> Iterator[str]:
    """Serve the page in a thread of its own, and give its address.

    `port` 0: a free one. Raises BadInput for a taken one.
    """
    bound, closing, secret = _bound(port), threading.Event(), secrets.token_urlsafe(16)
    thread = threading.Thread(target=lambda: asyncio.run(_serve(source, bound, secret, closing)), daemon=True)
    address = f"http://{HOST}:{bound.getsockname()[1]}/{secret}/"
    thread.start()
    try:
        yield address
    finally:
        closing.set()
        thread.join()


async def _serve(source: Source, bound: socket.socket, secret: str, closing: threading.Event) -> None:
    runner = web.AppRunner(application(source, secret, closing), handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.SockSite(runner, bound).start()
    await asyncio.to_thread(closing.wait)
    await runner.cleanup()


def _bound(port: int) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        one.bind((HOST, port))
        one.listen()  # a browser may connect before the thread has begun
    except OSError as error:
        one.close()
        raise BadInput(f"--port: {port} cannot be used: {error.strerror}; give another, or 0 for a free one") from None
    return one


@web.middleware
async def _only_here(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refuse what is asked under another name than that of this machine. The port may be that of a tunnel."""
    try:
        name = urlsplit(f"//{request.headers.get('Host', '')}").hostname
    except ValueError:
        name = None
    if name not in NAMES:
        raise web.HTTPForbidden(text=f"this page is for http://{HOST} only\n")
    return await handler(request)


async def _with_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


@cache
def _content(name: str) -> bytes:
    return (files("dtjob.ui") / "static" / name).read_bytes()


async def _file(request: web.Request) -> web.Response:
    name = request.match_info.get("file", "index.html")
    if name not in TYPES:
        raise web.HTTPNotFound(text="there is no such file\n")
    return web.Response(body=_content(name), content_type=TYPES[name], charset="utf-8")


async def _manifest(request: web.Request) -> web.Response:
    job = request.app[_SOURCE].hub.job(_key(request))
    if job is None:
        raise web.HTTPNotFound(text="there is no such job\n")
    return web.Response(text=written([shown_manifest(job)]), content_type="text/plain")


def _key(request: web.Request) -> Key:
    return request.match_info["namespace"], request.match_info["name"]


async def _jobs(request: web.Request) -> web.StreamResponse:
    """All jobs, and then those that change."""
    source = request.app[_SOURCE]
    version, known = -1, set[Key]()

    def new() -> Iterator[tuple[str, Any]]:
        nonlocal version
        yield "state", {"title": source.title, "trouble": source.hub.trouble}
        version, changes = source.hub.since(version, known)
        yield "jobs", changes

    return await _stream(request, new)


async def _job(request: web.Request) -> web.StreamResponse:
    """One job, its curves and the log of a task, whenever one of them has changed."""
    source, key = request.app[_SOURCE], _key(request)
    try:
        view = await asyncio.to_thread(source.view, key, request.query.get("task"))
    except (BadInput, ClientError) as error:
        said = {"title": source.title, "trouble": str(error)}
        return await _stream(request, lambda: iter([("state", said)]))
    try:
        return await _stream(request, lambda: _seen(source, key, view))
    finally:
        await asyncio.to_thread(source.close, view)


def _seen(source: Source, key: Key, view: View) -> Iterator[tuple[str, Any]]:
    yield "state", {"title": source.title, "trouble": source.hub.trouble}
    job = source.hub.job(key)
    if job is None:
        yield "gone", {}
        return
    yield "job", detail(job, view.pods, view.reports, view.why)
    yield "curves", {"note": view.note, "curves": view.curves()}
    yield "log", {"lines": view.log()}


async def _stream(request: web.Request, look: Callable[[], Iterator[tuple[str, Any]]]) -> web.StreamResponse:
    """Server-sent events: what `look` gives, by its names, if it is not what was sent last under this name."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    sent: dict[str, str] = {}
    quiet = 0.0
    while not request.app[_CLOSING].is_set():
        for name, text in await asyncio.to_thread(lambda: [(one, json.dumps(value)) for one, value in look()]):
            if sent.get(name) != text:
                sent[name] = text
                await response.write(f"event: {name}\ndata: {text}\n\n".encode())
                quiet = 0.0
        if quiet >= QUIET_SECONDS:
            await response.write(b":\n\n")
            quiet = 0.0
        await asyncio.sleep(LOOK_SECONDS)
        quiet += LOOK_SECONDS
    return response
