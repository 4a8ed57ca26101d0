# SPDX-License-Identifier: Apache-2.0
"""What an operator asked of the API server, as that one's audit log tells."""

import json
import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

Asked = Counter[tuple[str, str]]
"""Verb and resource (with its subresource) to the number of calls that were answered."""

APART = ("events", "leases", "selfsubjectaccessreviews")
"""Resources whose calls are no work for a job, or happen as often as somebody likes."""
STANDING = ("list", "watch")
"""Verbs of which there are as many however many jobs there are."""


LOOK_EVERY_SECONDS = 0.05
TIMEOUT = 1800.0
CREATED = 201
"""The HTTP status of a create that succeeded."""


class AuditLog:
    """The log of one API server."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def created(self, user: str, resource: str) -> "Created":
        """What this user creates from now on."""
        return Created(self, user, resource)

    def end(self) -> int:
        """Where the log ends now."""
        return self.path.stat().st_size if self.path.exists() else 0

    def asked(self, user: str, since: int) -> Asked:
        """The calls of a user that were logged after that place."""
        with self.path.open("rb") as file:
            file.seek(since)
            return count(user, file)


class Created:
    """What a user creates of one resource from now on, and when: seconds since the epoch at which the API server had
    stored it and was done. A watch would tell it too, as late as a busy machine lets it."""

    def __init__(self, log: AuditLog, user: str, resource: str) -> None:
        self._log, self._user, self._resource, self._read = log, user, resource, log.end()
        self.when: dict[str, float] = {}
        """By name."""

    def look(self) -> int:
        """Read on; how many there are by now."""
        with self._log.path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                self._take(json.loads(line))
        return len(self.when)

    def of(self, job: str) -> list[float]:
        """When each of those came whose name begins with this job's, in their order."""
        return sorted(when for name, when in self.when.items() if name.startswith(f"{job}-"))

    def wait(self, number: int, job: str | None = None, timeout: float = TIMEOUT) -> float:
        """Wait until there are so many, all in all or of one job; when the last of these came. Raises TimeoutError."""
        limit = time.monotonic() + timeout
        while True:
            self.look()
            found = self.of(job) if job else sorted(self.when.values())
            if len(found) >= number:
                return found[number - 1]
            if time.monotonic() > limit:
                raise TimeoutError(f"{len(found)} of {number} {self._resource} within {timeout:.0f} s")
            time.sleep(LOOK_EVERY_SECONDS)

    def _take(self, event: dict[str, Any]) -> None:
        where = event.get("objectRef") or {}
        asked = event["user"]["username"], event["verb"], where.get("resource"), where.get("subresource")
        if asked == (self._user, "create", self._resource, None) and event["responseStatus"]["code"] == CREATED:
            when = datetime.fromisoformat(event["stageTimestamp"])
            self.when.setdefault(where["name"], when.timestamp())


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
