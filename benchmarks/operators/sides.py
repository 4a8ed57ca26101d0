# SPDX-License-Identifier: Apache-2.0
"""The sides of a comparison: dtjob, TFJob at its defaults and tuned, each as a process; and the bare loop."""

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from benchmarks.operators.jobs import (
    NAMESPACE,
    TFJOB_LABELS,
    Shape,
    Task,
    dtjob,
    phase_of_dtjob,
    phase_of_tfjob,
    task_of_dtjob,
    task_of_tfjob,
    tfjob,
)
from benchmarks.peers import training_operator
from benchmarks.peers.bare_loop import Call
from dtjob.kube.calls.kinds import KINDS
from dtjob.objects import labels
from tools.cluster.control_plane import ControlPlane
from tools.cluster.program import Program
from tools.cluster.rest import Object, path_of

_TICK = os.sysconf("SC_CLK_TCK")
_END_SECONDS = 15.0
AS_IN_THE_IMAGE = "import sys; sys.modules['kubernetes'] = None; from dtjob.cli.main import main"
"""kopf imports the Kubernetes client of Python where it is there, which takes 7 MB. The operator's image has none."""


@dataclass(frozen=True)
class Usage:
    """What a process has cost so far: processor seconds, and the most memory that it ever had, in bytes."""

    cpu_seconds: float
    peak_bytes: int


class Place(Protocol):
    """What sides run on: a bed of an API server, or only this machine."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def clear(self) -> None:
        """Remove what a measurement has left."""


class Bed(Place, Protocol):
    """One with an API server."""

    @property
    def programs(self) -> Mapping[str, Path]:
        """Those that were built, by name."""

    @property
    def plane(self) -> ControlPlane:
        """The API server."""

    def kubeconfig_of(self, user: str) -> Path:
        """By which an operator calls."""


class Side(ABC):
    """One operator. `resource` is what its jobs are called, `user` whose calls are its own, `job_label` is on each pod
    with its job's name."""

    name: str
    resource: str
    user: str
    job_label: str
    bare = False
    _process: Program | None = None

    @abstractmethod
    def job(self, name: str, shape: Shape) -> Object:
        """A job's manifest."""

    @abstractmethod
    def phase_of(self, job: Object) -> str:
        """What a job's status says."""

    @abstractmethod
    def task_of(self, found: Mapping[str, str]) -> Task:
        """Whose pod it is, by its labels."""

    @abstractmethod
    def _start(self, bed: Bed) -> Program:
        """Start it; it is ready when this returns."""

    def start(self, bed: Bed) -> None:
        """Start the operator; it is ready when this returns."""
        self._process = self._start(bed)

    def stop(self) -> None:
        """Stop the operator, giving it time to end by itself."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.process.terminate()
        limit = time.monotonic() + _END_SECONDS
        while process.process.poll() is None and time.monotonic() < limit:
            time.sleep(0.05)
        process.stop()

    def filling(self) -> "Side":
        """The operator that makes the jobs before a measurement of how it is with them."""
        return self

    def usage(self) -> Usage:
        """What the operator's process has cost until now."""
        assert self._process is not None
        return usage_of(self._process.process.pid)

    def selector(self, job: str) -> str:
        """The label selector of a job's pods."""
        return f"{self.job_label}={job}"

    def task_of_pod(self, pod: Object) -> Task:
        """Whose pod it is."""
        return self.task_of(pod["metadata"].get("labels") or {})

    def applying(self, manifest: Object) -> Call:
        """The call that applies a job."""
        return Call("POST", path_of(self.resource, NAMESPACE), manifest)


class Dtjob(Side):
    """`dtjob operator`. `profile`: a file that gets cProfile's statistics of its life. `before`: a program that its
    process runs first. `arguments`: more of them."""

    name, resource, user, job_label = "dtjob", "dtjobs", "dtjob", labels.JOB_NAME

    def __init__(self, profile: Path | None = None, before: str = "", arguments: Sequence[str] = ()) -> None:
        self._profile, self._before, self._arguments = profile, before, arguments

    def job(self, name: str, shape: Shape) -> Object:
        """A job's manifest."""
        return dtjob(name, shape)

    def phase_of(self, job: Object) -> str:
        """What a job's status says."""
        return phase_of_dtjob(job)

    def task_of(self, found: Mapping[str, str]) -> Task:
        """Whose pod it is, by its labels."""
        return task_of_dtjob(found)

    def _start(self, bed: Bed) -> Program:
        call = f"import cProfile; cProfile.run('main()', {str(self._profile)!r})" if self._profile else "main()"
        program = "\n".join((self._before, AS_IN_THE_IMAGE, call))
        command = [sys.executable, "-c", program, "operator", *self._arguments]
        command.append(f"--kubeconfig={bed.kubeconfig_of(self.user)}")
        running = Program(f"dtjob-{time.monotonic_ns()}", command, bed.plane.directory)
        running.wait_until(lambda: "operator is watching" in running.log.read_text())
        return running


class TFJob(Side):
    """Kubeflow's Training Operator with these arguments."""

    resource, user, job_label = "tfjobs", "tfjob", f"training.kubeflow.org/{TFJOB_LABELS[0]}"

    def __init__(self, name: str, arguments: tuple[str, ...] = ()) -> None:
        self.name, self._arguments = name, arguments

    def job(self, name: str, shape: Shape) -> Object:
        """A job's manifest."""
        return tfjob(name, shape)

    def phase_of(self, job: Object) -> str:
        """What a job's status says."""
        return phase_of_tfjob(job)

    def task_of(self, found: Mapping[str, str]) -> Task:
        """Whose pod it is, by its labels."""
        return task_of_tfjob(found)

    def filling(self) -> Side:
        """As fast as it can be."""
        return TFJob(self.name, training_operator.TUNED)

    def _start(self, bed: Bed) -> Program:
        program, kubeconfig = bed.programs[training_operator.NAME], bed.kubeconfig_of(self.user)
        return training_operator.start(bed.plane, program, kubeconfig, self._arguments)


class BareLoop(Dtjob):
    """No operator: dtjob's objects, posted as fast as the API server takes them."""

    name, user, bare = "bare", "bare", True

    def start(self, bed: Bed) -> None:
        """There is nothing to start."""


SIDES: dict[str, Callable[[], Side]] = {
    "dtjob": Dtjob,
    "tfjob": lambda: TFJob("tfjob"),
    "tfjob-tuned": lambda: TFJob("tfjob-tuned", training_operator.TUNED),
    "bare": BareLoop,
}
"""All sides by name."""


def posts(objects: Iterable[Object]) -> list[Call]:
    """The calls that create these objects of a job."""
    return [Call("POST", path_of(KINDS[one["kind"]][1], NAMESPACE), one) for one in objects]


def usage_of(pid: int) -> Usage:
    """What a process has cost until now, as /proc tells."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return Usage(sum(map(int, ticks)) / _TICK, 1024 * peak)
