"""Watch events on their way to kopf, taken in as they come: kopf keeps the lists and streams, and sees no object.

kopf gives each event a task, a queue and a look for what has changed, for handlers that dtjob does not have: most of
what an event costs. So the session that kopf is given (`kopf.AiohttpSession`) answers with responses of a class of
ours. They hand each object of our kinds to `take`; what is left for kopf are empty lists, and bookmarks, which tell it
the version from which to go on. Errors, and streams and lists of other kinds, it gets as they are.

kopf asks once which kinds there are, and never watches one that an API server does not name then. Where one of ours is
missing (its definition was deleted, or another API server does not know it yet) its asking fails, so that the watches
are begun again.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import aiohttp
from yarl import URL

from dtjob.kube import deep_json
from dtjob.objects.manifest import Manifest

logger = logging.getLogger(__name__)

Take = Callable[[str, str | None, Manifest], None]
"""Takes in an object, given its kind and what happened to it: ADDED, MODIFIED, DELETED, or None for one of a list."""
Listed = Callable[[], None]
"""Hears that kopf has listed a kind from its beginning: what was deleted since its last watch brings no event."""
HAPPENED = ("ADDED", "MODIFIED", "DELETED")
_NAMESPACE = re.compile("/namespaces/[^/]+/")


class NotServed(Exception):
    """The API server does not name a kind that is to be watched."""


def response_class(kinds: dict[str, str], take: Take, listed: Listed = lambda: None) -> type[aiohttp.ClientResponse]:
    """The class of responses of which `take` gets the objects. `kinds`: where each kind is served for all namespaces,
    such as `/api/v1/pods`, to the kind."""

    class Response(aiohttp.ClientResponse):
        """Of one request of kopf's."""

        async def start(self, connection: Any) -> aiohttp.ClientResponse:
            """As for every response; the objects of a watch are taken out of its content."""
            await super().start(connection)
            kind = kind_of(self.url, kinds)
            if kind is not None and self.status == 200 and "watch" in self.url.query:
                self.content = Content(self.content, lambda happened, found: take(kind, happened, found))  # type: ignore[assignment]
            return self

        async def json(self, **options: Any) -> Any:
            """As for every response; the objects of a list are taken out of it. Raises NotServed."""
            kind = kind_of(self.url, kinds)
            if kind is None or self.status != 200:
                answer = await super().json(**options) if self.status == 200 else None
                if paths := unnamed(self.url, self.status, answer, kinds):
                    raise NotServed(f"the API server does not serve {paths[0]} yet, or no longer")
                return answer if self.status == 200 else await super().json(**options)
            page = deep_json.loads(await self.read())
            for found in page.get("items") or ():
                _take(lambda happened, found: take(kind, happened, found), None, found)
            if "continue" not in self.url.query:
                listed()
            return {**page, "items": []}

    return Response


def served_at(version: str, plural: str) -> str:
    """The path of a resource in all namespaces."""
    return f"/{'apis' if '/' in version else 'api'}/{version}/{plural}"


def kind_of(url: URL, kinds: dict[str, str]) -> str | None:
    """Whose list or watch this is, in one namespace or in all; None where it is none of these kinds'."""
    path = _NAMESPACE.sub("/", url.path)
    return next((kind for served, kind in kinds.items() if path.endswith(served)), None)


def unnamed(url: URL, status: int, answer: Any, kinds: Iterable[str]) -> list[str]:
    """Which of the kinds (their paths) an answer should name and does not: one that says what an API server has."""
    if status == 200 and url.path.endswith("/apis"):
        there = {group["name"] for group in answer.get("groups") or ()}
        return [path for path in kinds if path.startswith("/apis/") and path.split("/")[2] not in there]
    expected = [path for path in kinds if url.path.endswith(path.rpartition("/")[0])]
    if status == 404:
        return expected
    if status != 200 or not expected:
        return []
    there = {resource["name"] for resource in answer.get("resources") or ()}
    return [path for path in expected if path.rpartition("/")[2] not in there]


class Content:
    """The content of a watch, read line by line; all that kopf asks of it but the lines is the content's own."""

    def __init__(self, content: aiohttp.StreamReader, take: Callable[[str | None, Manifest], None]) -> None:
        self._content, self._take_one = content, take

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """What is left of the content, in whole lines: a bookmark in place of each row of events."""
        rest = b""
        async for data in self._content.iter_chunked(size):
            *lines, rest = (rest + data).split(b"\n")
            if left := self._left(lines):
                yield left
        if rest:
            yield rest

    def _left(self, lines: Sequence[bytes]) -> bytes:
        """Take in what these lines tell; what is left of them, each with its end."""
        left: list[bytes] = []
        version: str | None = None
        for line in filter(None, lines):
            event = _parsed(line)
            if event.get("type") in HAPPENED:
                found = event["object"]
                _take(self._take_one, event["type"], found)
                version = found["metadata"]["resourceVersion"]
                continue
            if version is not None:
                left.append(bookmark(version))
                version = None
            left.append(line)
        if version is not None:
            left.append(bookmark(version))
        return b"".join(line + b"\n" for line in left)


def bookmark(version: str) -> bytes:
    """The event that tells only how far a watch has come."""
    return json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}).encode()


def _parsed(line: bytes) -> dict[str, Any]:
    """An event; nothing where the line is none, which kopf is left to say."""
    try:
        event = deep_json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _take(take: Callable[[str | None, Manifest], None], happened: str | None, found: Manifest) -> None:
    try:
        take(happened, found)
    except Exception:  # one tenant's object is no reason to hear of no other's
        logger.exception("a bug in dtjob, in taking in %s", found.get("metadata", {}).get("name"))
