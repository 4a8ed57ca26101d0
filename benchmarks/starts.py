# SPDX-License-Identifier: Apache-2.0
"""Starts the program `first_step.py` in each way that there is, and measures how it comes to its first step."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.replica_specs import replica_specs
from dtjob.local.processes.addresses import free_ports
from tests.trainer.support.local_runs import written_job

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(__file__).parent / "programs" / "first_step.py"
WAIT_SECONDS = 180.0
GROUPS: Mapping[str, Mapping[str, int]] = {
    "Default": {"chief": 1},
    "OneDevice": {"chief": 1},
    "Mirrored": {"chief": 1},
    "CentralStorage": {"chief": 1},
    "MultiWorkerMirrored": {"chief": 1, "worker": 1},
    "ParameterServer": {"chief": 1, "worker": 1, "ps": 1},
}
TWO_CPUS = ("Mirrored", "CentralStorage")
"""Those that train on two devices here: the CPU is split."""
TF_KERAS = "tf_keras"
PHASES = {
    "program": "the program's first line",
    "imported": "Keras imported",
    "fit": "fit called",
    "begun": "its first batch",
    "stepped": "the end of the step",
}
"""The program's marks, and what each stands for."""


@dataclass
class Measured:
    """One start."""

    wall: float
    """Seconds."""
    cpu: float
    """Processor seconds of all processes."""
    phases: Mapping[str, tuple[float, float]]
    """Seconds, and processor seconds of the program's own process, that it took to each of PHASES from the last."""
    by_process: Counter[str]
    """Processor seconds by the name of the process."""


@dataclass
class Start:
    """What to start, and the files by which the program speaks with us."""

    commands: Sequence[tuple[Sequence[str], Mapping[str, str]]]
    """Each with its environment."""
    marks: Path
    go_on: Path
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def measure(self) -> Measured:
        """From the command to the first step, where the program waits; then everything is killed."""
        self.marks.unlink(missing_ok=True)
        began = time.time()
        with self._running() as name:
            self._wait(self.marks.exists)
            spent = processes.cpu_seconds(processes.of_run(name))
        marks = json.loads(self.marks.read_text())
        ends = [[began, 0.0], *(marks[phase] for phase in PHASES)]
        took = [(end[0] - begin[0], end[1] - begin[1]) for begin, end in pairwise(ends)]
        wall = marks["stepped"][0] - began
        return Measured(wall, sum(spent.values()), dict(zip(PHASES, took, strict=True)), spent)

    def leave_a_checkpoint(self, pattern: str | None) -> None:
        """Let it train until a file below the directory is there that fits `pattern`, or to its end, and kill it."""
        self.go_on.touch()
        with self._running():
            self._wait(lambda: any(self.directory.glob(pattern)) if pattern else self._ended())
        self.go_on.unlink()

    @property
    def directory(self) -> Path:
        """Where everything of it is."""
        return self.marks.parent

    @contextmanager
    def _running(self) -> Iterator[str]:
        """While this lasts, its processes run; gives the name by which to find them."""
        name = uuid.uuid4().hex
        self._started = []
        try:
            for command, environ in self.commands:
                with self._log.open("ab") as output:
                    self._started.append(
                        subprocess.Popen(
                            command,
                            cwd=ROOT,
                            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **environ, processes.MARK: name},
                            stdin=subprocess.DEVNULL,
                            stdout=output,
                            stderr=output,
                            start_new_session=True,
                        )
                    )
            yield name
        finally:
            processes.kill(name)
            for process in self._started:
                process.wait()

    def _ended(self) -> bool:
        return all(process.poll() is not None for process in self._started)

    def _wait(self, reached: Callable[[], bool]) -> None:
        """Raises RuntimeError, with what was printed, where all ends before, or it takes too long."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not reached():
            time.sleep(0.005)
            if (self._ended() and not reached()) or time.monotonic() > deadline:
                logs = [self._log, *self.directory.rglob("*.log")]
                raise RuntimeError("\n".join(log.read_text(errors="replace") for log in logs))

    @property
    def _log(self) -> Path:
        return self.directory / "output"


def plain(directory: Path, case: str, checkpoints: Path | None = None) -> Start:
    """`python script.py`."""
    arguments, files = _files(directory, case)
    if checkpoints:
        arguments = [*arguments, f"--checkpoints={checkpoints}"]
    return Start([([sys.executable, str(PROGRAM), f"--plain={strategy_of(case)}", *arguments], {})], *files)


def by_model_fit(directory: Path, case: str) -> Start:
    """`dtjob run` of the script as it is, which calls Model.fit."""
    return by_run(directory, case, "--model-fit")


def by_run(directory: Path, case: str, *more: str) -> Start:
    """`dtjob run` of a job of one chief, and what else the strategy needs; `more` arguments of the program."""
    strategy = strategy_of(case)
    arguments, files = _files(directory, case)
    arguments = [*arguments, *more]
    spec: dict[str, Any] = {
        "strategy": strategy,
        "program": {"entrypoint": str(PROGRAM), "args": arguments},
        "replicaSpecs": replica_specs(GROUPS[strategy]),
        "checkpoint": {"storage": {"volume": {"emptyDir": {}}}, "everySteps": 1},
    }
    if strategy in TWO_CPUS:
        spec["strategyOptions"] = {"logicalCPUs": 2}
    file = written_job(directory / "job.yaml", "first-step", **spec)
    command = [sys.executable, "-m", "dtjob", "run", str(file), "--work-dir", str(directory)]
    path = os.pathsep.join([str(ROOT / "operator"), str(ROOT / "trainer_image")])
    return Start([(command, {"PYTHONPATH": path})], *files)


def in_containers(directory: Path, case: str) -> Start:
    """The command of a training container, for each task."""
    strategy = strategy_of(case)
    arguments, files = _files(directory, case)
    tasks = [(role, index) for role, count in GROUPS[strategy].items() for index in range(count)]
    ports = iter(free_ports(3 * len(tasks)))
    cluster: dict[str, list[str]] = {}
    for role, _ in tasks:
        cluster.setdefault(role, []).append(f"127.0.0.1:{next(ports)}")
    (directory / "cluster.json").write_text(json.dumps(cluster))
    rendezvous = next(ports)
    common = {
        "DTJOB_NAME": "first-step", "DTJOB_NAMESPACE": "default", "DTJOB_UID": "uid-1", "DTJOB_STRATEGY": strategy,
        "DTJOB_CLUSTER_FILE": str(directory / "cluster.json"), "DTJOB_CLUSTER_HASH": "hash-1",
        "DTJOB_RENDEZVOUS_ADDRESS": f"127.0.0.1:{rendezvous}",
        "DTJOB_CHECKPOINT": json.dumps({"directory": str(directory / "checkpoints"), "everySteps": 1}),
        "DTJOB_PARENT": str(os.getpid()), "PYTHONPATH": str(ROOT / "trainer_image"),
        **({"DTJOB_STRATEGY_OPTIONS": '{"logicalCPUs": 2}'} if strategy in TWO_CPUS else {}),
    }  # fmt: skip
    command = [sys.executable, "-m", "dtjob_trainer", str(PROGRAM), *arguments]
    commands = []
    for role, index in tasks:
        port = next(ports)
        own = {"DTJOB_ROLE": role, "DTJOB_INDEX": str(index), "DTJOB_STATUS_PORT": str(port)}
        commands.append((command, {**common, **own}))
    return Start(commands, *files)


def strategy_of(case: str) -> str:
    """The strategy of a case: its name but for tf_keras, which is measured under Default."""
    return case if case in GROUPS else "Default"


def _files(directory: Path, case: str) -> tuple[list[str], tuple[Path, Path]]:
    """The program's arguments, and the files that it writes and waits for, in the new `directory`."""
    directory.mkdir(parents=True)
    marks, go_on = directory / "marks.json", directory / "go-on"
    package = TF_KERAS if case == TF_KERAS else "keras"
    return [f"--marks={marks}", f"--go-on={go_on}", f"--package={package}"], (marks, go_on)
