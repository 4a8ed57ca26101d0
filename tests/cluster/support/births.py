# SPDX-License-Identifier: Apache-2.0
"""How often a pod of each name was created."""

import threading
from collections import Counter

from tools.cluster.rest import Api


class Births:
    """Counts how often a pod of each name was created in a namespace, from a watch."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._stop = threading.Event()
        self.uids: set[tuple[str, str]] = set()
        version = api.call("GET", f"api/v1/namespaces/{namespace}/pods")["metadata"]["resourceVersion"]
        self._thread = threading.Thread(target=self._follow, args=(version,), daemon=True)
        self._thread.start()

    def _follow(self, version: str) -> None:
        while not self._stop.is_set():
            for kind, pod in self._api.watch("pods", self._namespace, version, 1.0):
                version = pod["metadata"].get("resourceVersion", version)
                if kind == "ADDED":
                    self.uids.add((pod["metadata"]["name"], pod["metadata"]["uid"]))

    def doubled(self) -> list[str]:
        self._stop.set()
        self._thread.join()
        return [name for name, count in Counter(name for name, _ in self.uids).items() if count > 1]
