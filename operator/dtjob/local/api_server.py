# SPDX-License-Identifier: Apache-2.0
"""What an API server keeps of a job's objects, in memory: names, uids, resource versions, and who hears of changes."""

import itertools
import uuid
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime

from dtjob import times
from dtjob.controller.cluster import AlreadyExists
from dtjob.objects.manifest import Manifest

Watcher = Callable[[str, Manifest], None]
"""Called with ADDED, MODIFIED or DELETED and a copy of the object, as a watch would."""


class Objects:
    """The objects of one namespace. Everything that goes in or out is a copy."""

    def __init__(self, watcher: Watcher) -> None:
        self._objects: dict[tuple[str, str], Manifest] = {}
        self._versions = itertools.count(1)
        self._watcher = watcher

    def get(self, kind: str, name: str, uid: str | None = None) -> Manifest | None:
        """The object, None if there is none; with this uid, if one is given."""
        found = self._objects.get((kind, name))
        return deepcopy(found) if found and uid in (None, found["metadata"]["uid"]) else None

    def all(self, kind: str) -> list[Manifest]:
        """All objects of one kind."""
        return [deepcopy(manifest) for (kind_, _), manifest in self._objects.items() if kind_ == kind]

    def add(self, manifest: Manifest) -> Manifest:
        """Keep a new object. Raises AlreadyExists."""
        key = manifest["kind"], manifest["metadata"]["name"]
        if key in self._objects:
            raise AlreadyExists(deepcopy(self._objects[key]))
        stored = deepcopy(manifest)
        metadata = stored["metadata"]
        metadata["uid"] = metadata.get("uid") or str(uuid.uuid4())
        metadata["creationTimestamp"] = times.rfc3339(datetime.now(UTC))
        metadata["resourceVersion"] = str(next(self._versions))
        self._objects[key] = stored
        self._watcher("ADDED", deepcopy(stored))
        return deepcopy(stored)

    def change(self, kind: str, name: str, change: Callable[[Manifest], None]) -> Manifest | None:
        """Apply `change` to the object and return it; None if it is gone already."""
        stored = self._objects.get((kind, name))
        if stored is None:
            return None
        change(stored)
        stored["metadata"]["resourceVersion"] = str(next(self._versions))
        self._watcher("MODIFIED", deepcopy(stored))
        return deepcopy(stored)

    def remove(self, kind: str, name: str) -> None:
        """Forget the object; gone already is fine."""
        stored = self._objects.pop((kind, name), None)
        if stored is not None:
            stored["metadata"]["resourceVersion"] = str(next(self._versions))
            self._watcher("DELETED", stored)
