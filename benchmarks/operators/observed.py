# SPDX-License-Identifier: Apache-2.0
"""When what happened, by watches of the measuring process: pods that came, jobs that got on."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Self

from benchmarks.operators.jobs import NAMESPACE, Task
from tools.cluster.rest import METADATA_ONLY, Api, Object, path_of

TIMEOUT = 1800.0


class Watched:
    """A watch of one resource of the namespace, from its beginning on."""

    def __init__(self, api: Api, resource: str, accept: str = "application/json") -> None:
        self._api, self._resource, self._accept = api, resource, accept
        self._changed, self._stopped = threading.Condition(), False
        self._interrupt: Callable[[], None] = lambda: None
        self._error: BaseException | None = None
        listing = api.call("GET", path_of(resource, NAMESPACE), None, {"limit": "1"})
        self._version = str(listing["metadata"]["resourceVersion"])
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._interrupt()
        self._thread.join()

    def wait(self, condition: Callable[[], bool], what: str, timeout: float = TIMEOUT) -> None:
        """Return when `condition` holds. Raises TimeoutError with `what` was waited for."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._error or condition(), timeout):
                raise TimeoutError(f"{what}: not within {timeout:.0f} s")
        if self._error:
            raise RuntimeError(f"the watch of {self._resource} broke") from self._error

    def _follow(self) -> None:
        try:
            while not self._stopped:
                for kind, found in self._api.watch(
                    self._resource, NAMESPACE, self._version, 60.0, self._opened, self._accept
                ):
                    if kind == "ERROR":
                        raise RuntimeError(str(found))
                    self._version = found["metadata"]["resourceVersion"]
                    with self._changed:
                        self.take_in(kind, found, time.monotonic())
                        self._changed.notify_all()
        except BaseException as error:
            if not self._stopped:
                self._error = error
                with self._changed:
                    self._changed.notify_all()

    def _opened(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt

    def take_in(self, kind: str, found: Object, now: float) -> None:
        """One event of the watch, which came at `now` by time.monotonic."""
        raise NotImplementedError


class Pods(Watched):
    """Pods that come. `task_of` tells by its labels whose a pod is."""

    def __init__(self, api: Api, task_of: Callable[[Mapping[str, str]], Task]) -> None:
        super().__init__(api, "pods", METADATA_ONLY)
        self._task_of, self._uids = task_of, set[str]()
        self.born: dict[Task, list[float]] = {}
        """Each task to the times at which pods of it came."""

    def take_in(self, kind: str, found: Object, now: float) -> None:
        """Only that a pod came counts."""
        metadata = found["metadata"]
        if kind == "ADDED" and metadata["uid"] not in self._uids:
            self._uids.add(metadata["uid"])
            task = self._task_of(metadata.get("labels") or {})
            self.born.setdefault(task, []).append(now)

    def wait_task(self, task: Task, number: int = 1) -> float:
        """Wait until so many pods of this task have come; when the last of these did."""
        self.wait(lambda: len(self.born.get(task, ())) >= number, f"{number} pods of {task}")
        return self.born[task][number - 1]


class Jobs(Watched):
    """`reached`: phase to the jobs that were seen in it, each with the time at which it was first."""

    def __init__(self, api: Api, resource: str, phase_of: Callable[[Object], str]) -> None:
        super().__init__(api, resource)
        self._phase_of = phase_of
        self.reached: dict[str, dict[str, float]] = {}

    def take_in(self, kind: str, found: Object, now: float) -> None:
        """What its status says."""
        if kind != "DELETED" and (phase := self._phase_of(found)):
            self.reached.setdefault(phase, {}).setdefault(found["metadata"]["name"], now)

    def wait_all(self, phase: str, names: Collection[str]) -> float:
        """Wait until all of these jobs have been in this phase; when the last of them came into it."""
        wanted = set(names)
        self.wait(lambda: wanted <= self.reached.get(phase, {}).keys(), f"{len(names)} jobs {phase}")
        return max(self.reached[phase][name] for name in names)

    def wait_phase(self, phase: str, number: int) -> float:
        """Wait until so many jobs have been in this phase; when the last of these came into it."""
        self.wait(lambda: len(self.reached.get(phase, ())) >= number, f"{number} jobs {phase}")
        return sorted(self.reached[phase].values())[number - 1]
