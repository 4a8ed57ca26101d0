# SPDX-License-Identifier: Apache-2.0
"""Plays the kubelet: gives pods the statuses that a node would give them, and ends those that are being deleted.

    with Kubelet(api, namespace) as kubelet:            # auto=True: every new pod runs at once
        kubelet.run("digits-chief-0-0")                 # bound to a node, Running, ready, with an address
        kubelet.exit("digits-chief-0-0", 137, "OOMKilled")
        kubelet.exit("digits-worker-1-0", signal=9)     # exit code 137
        kubelet.evict("digits-worker-0-0")              # DisruptionTarget, Failed, no container status
        kubelet.hang("digits-ps-0-0")                   # a lost node: deletion is never confirmed, until release()

Every method waits (by watch) for the pod to be there and returns it as the API server has it afterwards. A thread
follows the namespace's pods: one with a deletionTimestamp is ended (143) and removed, unless it hangs. What goes wrong
in it fails whatever the test waits for.
"""

import itertools
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from tools.cluster.rest import Api, ApiError, Object

WATCH_SECONDS = 300.0
"""How long one watch lasts without a word."""

Edit = Callable[[Object], None]


def now() -> str:
    """The time as the API server writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelet:
    """The nodes under one namespace. All pods are bound to one node object, `node`, made where it is missing."""

    _addresses = itertools.count(2)

    def __init__(self, api: Api, namespace: str, auto: bool = False, node: str = "node-1") -> None:
        self.api = api
        self.namespace = namespace
        self.auto = auto
        self.node = node
        self._hanging: set[str] = set()
        self._all_hang = False
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._interrupt: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._follow, name=f"kubelet-{namespace}", daemon=True)
        self.errors: list[BaseException] = []
        """What went wrong in the thread: every wait of `api` raises the first of them, and so does close()."""

    def __enter__(self) -> Self:
        try:
            self.api.create("nodes", None, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}})
        except ApiError as error:
            if error.status != 409:
                raise
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop following the pods. Raises what the thread ran into."""
        self._stopping.set()
        self._interrupt()
        self._thread.join()
        self.api.helpers_errors = [one for one in self.api.helpers_errors if one not in self.errors]
        if self.errors:
            raise self.errors[0]

    def run(self, pod: str, address: str = "") -> Object:
        """Bind the pod and let all its containers run, at this address where it has none yet."""
        self._bind(pod)
        names = _names(self._existing(pod))
        return self._edit(pod, lambda status: _set_running(status, names, address or self._address()))

    def wait(self, pod: str, reason: str = "ImagePullBackOff", message: str = "Back-off pulling image") -> Object:
        """The pod is bound, but its containers wait: ImagePullBackOff, ErrImagePull, CreateContainerConfigError ..."""
        self._bind(pod)
        names = _names(self._existing(pod))

        def edit(status: Object) -> None:
            status["phase"] = "Pending"
            status.setdefault("startTime", now())
            _set_containers(status, names, {"waiting": {"reason": reason, "message": message}})
            _set_condition(status, "PodScheduled", True)
            _set_ready(status, False)

        return self._edit(pod, edit)

    def unschedulable(self, pod: str, message: str = "0/1 nodes are available: 1 Insufficient cpu.") -> Object:
        """The scheduler finds no node."""
        return self._edit(pod, lambda status: _set_condition(status, "PodScheduled", False, "Unschedulable", message))

    def exit(self, pod: str, code: int = 0, reason: str | None = None, message: str = "", signal: int = 0) -> Object:
        """All containers end with `code`, or by `signal` (128 + signal), and so does the pod (restartPolicy Never)."""
        code = 128 + signal if signal else code
        why = reason or ("Completed" if code == 0 else "Error")

        def edit(status: Object) -> None:
            began = status.get("startTime") or now()
            state: Object = {"exitCode": code, "reason": why, "startedAt": began, "finishedAt": now()}
            state |= {"signal": signal} if signal else {}
            state |= {"message": message} if message else {}
            for own in status.get("containerStatuses", []):
                own |= {"state": {"terminated": state}, "ready": False, "started": False}
            status["phase"] = "Failed" if code else "Succeeded"
            _set_ready(status, False)

        self._started(pod)
        return self._edit(pod, edit)

    def succeed(self, pod: str) -> Object:
        """All containers end with 0."""
        return self.exit(pod)

    def evict(self, pod: str, message: str = "The node was low on resource: memory.") -> Object:
        """Node-pressure eviction: the kubelet fails the pod and says DisruptionTarget; no container status is left."""

        def edit(status: Object) -> None:
            status |= {"phase": "Failed", "reason": "Evicted", "message": message}
            status.pop("containerStatuses", None)
            _set_condition(status, "DisruptionTarget", True, "TerminationByKubelet", message)
            _set_ready(status, False)

        self._bind(pod)
        return self._edit(pod, edit)

    def preempt(self, pod: str) -> None:
        """The scheduler makes room: DisruptionTarget, then a graceful deletion, which the thread confirms."""
        self._edit(pod, lambda status: _set_condition(status, "DisruptionTarget", True, "PreemptionByScheduler"))
        self.api.delete("pods", self.namespace, pod)

    def drain(self, pod: str) -> None:
        """Evict through the API, as `kubectl drain` does (DisruptionTarget: EvictionByEvictionAPI, then deletion)."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": self.namespace},
        }
        self.api.call("POST", f"api/v1/namespaces/{self.namespace}/pods/{pod}/eviction", eviction)

    def hang(self, *pods: str) -> None:
        """These pods (none named: all) are on a lost node: nobody confirms their deletion any more."""
        with self._lock:
            self._all_hang = self._all_hang or not pods
            self._hanging.update(pods)

    def release(self, *pods: str) -> None:
        """The lost node of these pods (none named: all) is back: those that are being deleted go."""
        with self._lock:
            self._all_hang = self._all_hang and bool(pods)
            self._hanging.difference_update(pods or set(self._hanging))
        for pod in self.api.list("pods", self.namespace):
            self._look_at(pod)

    def _address(self) -> str:
        number = next(Kubelet._addresses)
        return f"10.244.{number // 250}.{number % 250 + 1}"

    def _begin(self, pod: Object) -> None:
        """Run a new pod, unless the test was faster: it may run already, or have ended. It is never waited for: the
        thread has others to look after. Raises ApiError (404) where it is gone."""
        name, names = pod["metadata"]["name"], _names(pod)
        if not pod["spec"].get("nodeName"):
            self._bind_unbound(name)
        while True:
            current = self.api.get("pods", self.namespace, name)
            status = current["status"]
            if current["metadata"]["uid"] != pod["metadata"]["uid"] or not _is_new(status):
                return
            _set_running(status, names, self._address())
            try:
                self.api.replace("pods", self.namespace, current, "status")
                return
            except ApiError as error:
                if error.status != 409:
                    raise

    def _bind(self, pod: str) -> None:
        """Bind as the scheduler does. A pod without a node would vanish at its deletion, with no grace period."""
        if not self._existing(pod)["spec"].get("nodeName"):
            self._bind_unbound(pod)

    def _bind_unbound(self, pod: str) -> None:
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, "namespace": self.namespace}}
        binding["target"] = {"apiVersion": "v1", "kind": "Node", "name": self.node}
        try:
            self.api.call("POST", f"api/v1/namespaces/{self.namespace}/pods/{pod}/binding", binding)
        except ApiError as error:
            if error.status != 409:  # bound by the other of test and thread
                raise

    def _started(self, pod: str) -> None:
        if not self._existing(pod).get("status", {}).get("containerStatuses"):
            self.run(pod)

    def _existing(self, pod: str) -> Object:
        found = self.api.wait_for("pods", self.namespace, pod, lambda item: item is not None)
        assert found is not None
        return found

    def _edit(self, pod: str, edit: Edit) -> Object:
        """Change the pod's status against the version that was read, again where another writer came between."""
        while True:
            current = self._existing(pod)
            edit(current.setdefault("status", {}))
            try:
                return self.api.replace("pods", self.namespace, current, "status")
            except ApiError as error:
                if error.status != 409:
                    raise

    def _follow(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    listing = self.api.call("GET", f"api/v1/namespaces/{self.namespace}/pods")
                    for pod in listing["items"]:
                        self._look_at(pod)
                    version = listing["metadata"]["resourceVersion"]
                    for kind, pod in self.api.watch("pods", self.namespace, version, WATCH_SECONDS, self._opened):
                        if kind in ("ADDED", "MODIFIED"):
                            self._look_at(pod)
                        if self._stopping.is_set():
                            return
                except self.api.UNREACHABLE:  # a test took the API server away
                    self._stopping.wait(0.2)
                except ValueError:
                    # Python drops a TLS session at once when its socket is shut down, and a read that is under way in
                    # this thread then gets what the wire carries.
                    if not self._stopping.is_set():
                        raise
        except BaseException as error:
            self.errors.append(error)
            self.api.helpers_errors.append(error)

    def _opened(self, interrupt: Callable[[], None]) -> None:
        """A watch is open: close() may have come before it."""
        self._interrupt = interrupt
        if self._stopping.is_set():
            interrupt()

    def _look_at(self, pod: Object) -> None:
        """Do what a node does by itself: run what is new (auto), end and remove what is being deleted."""
        meta = pod["metadata"]
        try:
            if meta.get("deletionTimestamp"):
                with self._lock:
                    hangs = self._all_hang or meta["name"] in self._hanging
                if not hangs:
                    self._end(pod)
            elif self.auto and meta["uid"] not in self._seen:
                self._seen.add(meta["uid"])
                self._begin(pod)
        except ApiError as error:
            if error.status not in (404, 409):  # it went meanwhile
                raise

    def _end(self, pod: Object) -> None:
        """What follows a deletionTimestamp: containers get SIGTERM and end, then the API object goes."""
        meta, status = pod["metadata"], pod.get("status", {})
        if status.get("phase") == "Running":
            ended = {"exitCode": 143, "reason": "Error", "startedAt": status.get("startTime"), "finishedAt": now()}
            for own in status.get("containerStatuses", []):
                if "running" in own["state"]:
                    own |= {"state": {"terminated": ended}, "ready": False, "started": False}
            status["phase"] = "Failed"
            _set_ready(status, False)
            self.api.replace("pods", self.namespace, pod, "status")
        self.api.delete("pods", self.namespace, meta["name"], grace=0, uid=meta["uid"])


def _names(pod: Object) -> list[tuple[str, str]]:
    """Its containers, each with its image."""
    return [(own["name"], own["image"]) for own in pod["spec"]["containers"]]


def _is_new(status: Object) -> bool:
    """Whether no node has said anything of the pod yet."""
    return status.get("phase") == "Pending" and not status.get("containerStatuses")


def _set_running(status: Object, containers: list[tuple[str, str]], address: str) -> None:
    status.setdefault("podIP", address)
    status["podIPs"] = [{"ip": status["podIP"]}]
    status["hostIP"] = "127.0.0.1"
    status["hostIPs"] = [{"ip": "127.0.0.1"}]
    status.setdefault("startTime", now())
    status["phase"] = "Running"
    _set_containers(status, containers, {"running": {"startedAt": now()}})
    for kind in ("PodScheduled", "Initialized"):
        _set_condition(status, kind, True)
    _set_ready(status, True)


def _set_containers(status: Object, containers: list[tuple[str, str]], state: Object) -> None:
    status["containerStatuses"] = [
        {
            "name": name,
            "image": image,
            "imageID": f"test/{name}",
            "ready": "running" in state,
            "started": "running" in state,
            "restartCount": 0,
            "state": state,
            **({"containerID": f"test://{name}"} if "running" in state else {}),
        }
        for name, image in containers
    ]


def _set_ready(status: Object, ready: bool) -> None:
    for kind in ("ContainersReady", "Ready"):
        _set_condition(status, kind, ready)


def _set_condition(status: Object, kind: str, value: bool, reason: str = "", message: str = "") -> None:
    """Set one condition and leave the others as they are."""
    condition: dict[str, Any] = {"type": kind, "status": "True" if value else "False", "lastTransitionTime": now()}
    condition |= {"reason": reason} if reason else {}
    condition |= {"message": message} if message else {}
    others = [own for own in status.get("conditions", []) if own["type"] != kind]
    status["conditions"] = [*others, condition]
