# SPDX-License-Identifier: Apache-2.0
"""Real nodes for sides that train: kubelet, containerd and the project's trainer image, on this machine."""

import contextlib
import shutil
import time
from pathlib import Path
from typing import Self

from benchmarks.operators.goodput import Note, read
from benchmarks.operators.jobs import NAMESPACE
from benchmarks.operators.rounds import say
from benchmarks.operators.sides import Side
from benchmarks.operators.testbed import PEER, ROOT
from benchmarks.peers import training_operator
from tools import images
from tools.cluster.bare_node import BareNode
from tools.cluster.rest import Api, ApiError, Object
from tools.node import packages

PROGRAM = ROOT / "benchmarks" / "programs" / "recovery.py"
CONTAINER = "tensorflow"
POLL_SECONDS = 0.1


class NodeBed:
    """One cluster of two nodes for all sides. Each job has a volume that all its pods see, with the program in it."""

    def __init__(self, programs: dict[str, Path]) -> None:
        self.programs = programs
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Self:
        packages.ensure(say)
        built = images.build(["trainer"], say=say)["trainer"]
        with contextlib.ExitStack() as undo:
            self._node = undo.enter_context(BareNode(self.programs))
            self.image = self._node.load(built)
            self.plane, self.api = self._node.control_plane, Api(self._node.kubeconfig)
            self._install()
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def kubeconfig_of(self, user: str) -> Path:
        """An administrator's, whoever asks."""
        return self._node.kubeconfig

    def volume(self, name: str) -> Path:
        """Make a claim that every pod may mount; its directory, with the program in it."""
        self._node.claim(NAMESPACE, name, shared=True)
        directory = self._node.volumes / NAMESPACE / name
        shutil.copy(PROGRAM, directory)
        return directory

    def kill(self, side: Side, job: str, role: str, index: int, until: float, whole: bool = False) -> float | None:
        """SIGKILL the process of a task that trains, or with `whole` its container's first, once it runs; when that
        was. None where it did not run until then."""
        kill = self._node.kill_container if whole else self._node.kill_program
        while time.monotonic() < until:
            for pod in self.api.list("pods", NAMESPACE, side.selector(job)):
                if side.task_of_pod(pod) == (job, role, str(index)) and _runs(pod):
                    began = time.monotonic()
                    with contextlib.suppress(AssertionError):  # it has just ended by itself
                        kill(pod, CONTAINER)
                        return began
            time.sleep(POLL_SECONDS)
        return None

    def delete(self, side: Side, job: str) -> None:
        """Delete a job with all its pods, at once; return when none is left."""
        self.api.delete(side.resource, NAMESPACE, job)
        while pods := self.api.list("pods", NAMESPACE, side.selector(job)):
            for pod in pods:
                self.api.delete("pods", NAMESPACE, pod["metadata"]["name"], grace=0)
            time.sleep(POLL_SECONDS)

    def clear(self) -> None:
        """A measurement deletes its job itself."""

    def logs(self, side: Side, job: str) -> str:
        """The ends of the logs of a job's pods, with the job's status and its pods', for whoever asks why."""
        found = [self._node.kubectl("get", f"{side.resource}/{job}", "-n", NAMESPACE, "-o", "yaml", check=False).stdout]
        for pod in self.api.list("pods", NAMESPACE, side.selector(job)):
            name = pod["metadata"]["name"]
            for which in ("--previous=true", "--previous=false"):
                log = self._node.kubectl("logs", name, "-n", NAMESPACE, "--tail=40", which, check=False)
                found.append(f"== {name} {which} {pod['status']['phase']}\n{log.stdout}")
        return "\n".join(found)

    def _install(self) -> None:
        self.plane.kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
        self.api.wait_established()
        if PEER in self.programs:
            training_operator.install(self.plane, self.programs[PEER])
        with contextlib.suppress(ApiError):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            self.api.create("namespaces", None, namespace)
        self.plane.kubectl("wait", "--for=create", "serviceaccount/default", "-n", NAMESPACE, "--timeout=60s")


class StepFile:
    """What the chief of a job has noted so far, in the file `path`."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "steps"

    def notes(self) -> list[Note]:
        """All of it."""
        return read(self.path.read_text()) if self.path.exists() else []

    def wait_step(self, step: int, seconds: float) -> bool:
        """Wait until this step was done; False where it was not within so long."""
        limit = time.monotonic() + seconds
        while max((note.step for note in self.notes()), default=0) < step:
            if time.monotonic() > limit:
                return False
            time.sleep(POLL_SECONDS)
        return True


def _runs(pod: Object) -> bool:
    containers = pod["status"].get("containerStatuses") or ()
    running = any(one["name"] == CONTAINER and "running" in one["state"] for one in containers)
    return running and "deletionTimestamp" not in pod["metadata"]
