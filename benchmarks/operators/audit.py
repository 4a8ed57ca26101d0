"""What an operator asked of the API server, as that one's audit log tells."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

Asked = Counter[tuple[str, str]]
"""Verb and resource (with its subresource) to the number of calls that were answered."""

APART = ("events", "leases", "selfsubjectaccessreviews")
"""Resources whose calls are no work for a job, or happen as often as somebody likes."""
STANDING = ("list", "watch")
"""Verbs of which there are as many however many jobs there are."""


class AuditLog:
    """The log of one API server."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def end(self) -> int:
        """Where the log ends now."""
        return self._path.stat().st_size if self._path.exists() else 0

    def asked(self, user: str, since: int) -> Asked:
        """The calls of a user that were logged after that place."""
        with self._path.open("rb") as file:
            file.seek(since)
            return count(user, file)


def policy(users: Iterable[str]) -> dict[str, object]:
    """An audit policy: each call of these users once, when it has been answered, and nobody else's."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [{"level": "Metadata", "users": sorted(users)}, {"level": "None"}],
    }


def count(user: str, lines: Iterable[bytes]) -> Asked:
    """The calls of a user in lines of the log. Discovery, which names no resource, is left out."""
    asked: Asked = Counter()
    for line in lines:
        event = json.loads(line)
        where = event.get("objectRef") or {}
        if event["user"]["username"] == user and "resource" in where:
            asked[event["verb"], "/".join(filter(None, (where["resource"], where.get("subresource"))))] += 1
    return asked


def requests(asked: Asked) -> int:
    """Calls besides Events, deletes, and lists and watches."""
    return sum(
        number
        for (verb, resource), number in asked.items()
        if verb not in (*STANDING, "delete", "deletecollection") and resource not in APART
    )
