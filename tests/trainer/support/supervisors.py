# SPDX-License-Identifier: Apache-2.0
"""Starts real supervisor processes on loopback, for the tests beside this file."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dtjob.local.processes.addresses import free_ports

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[3]
SMALL_PROGRAM = ROOT / "tests" / "trainer" / "programs" / "small_program.py"

LAUNCHER = """
import os, sys
from dtjob_trainer.__main__ import supervise
from dtjob_trainer.supervisor.supervisor import Supervisor
from dtjob_trainer.contract.task import Task
task = Task.from_environment(os.environ)
supervise(Supervisor(task, [sys.executable, *sys.argv[1:]], os.environ), task.parent)
"""
"""A supervisor whose training process is another program than dtjob_trainer.run."""


def wait_until(condition: Callable[[], T], what: str, seconds: float = 60) -> T:
    """Wait until `condition()` is true and return it; AssertionError naming `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"after {seconds} s still not: {what}"
        time.sleep(0.01)
    return value


def exists(pid: int) -> bool:
    """Whether a process of this id is there, alive or a zombie."""
    return Path(f"/proc/{pid}").exists()


def runs(pid: int) -> bool:
    """Whether a process of this id is there and alive: an orphan's zombie is not ours to reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def zombies_of(pid: int) -> list[int]:
    """Dead children of `pid` that it has not reaped."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


class Running:
    """One supervisor process."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process, self.port, self.log = process, port, log
        self.pid = process.pid

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as response:
            return str(response.read().decode())

    def status(self) -> dict[str, Any]:
        """The body of /status; empty while it cannot be read."""
        try:
            value: dict[str, Any] = json.loads(self.get("/status"))
        except OSError:
            return {}
        return value

    def wait_for(self, seconds: float = 60, **wanted: object) -> dict[str, Any]:
        """Wait until /status shows all of `wanted`; returns it."""

        def fits() -> dict[str, Any]:
            assert self.process.poll() is None, f"ended with {self.process.returncode}\n{self.log.read_text()}"
            status = self.status()
            return status if all(status.get(key) == value for key, value in wanted.items()) else {}

        try:
            return wait_until(fits, f"{wanted}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.status()}\n{self.log.read_text()}") from None

    def end(self, seconds: float = 60) -> int:
        """Wait for its end; returns its exit code."""
        return self.process.wait(seconds)


class Job:
    """One job's surroundings: cluster file, ports, directory. Ends what it started."""

    def __init__(self, directory: Path, strategy: str = "Default", **counts: int) -> None:
        self.directory, self.strategy, self.uid = directory, strategy, "uid-1"
        self.launcher = LAUNCHER
        """The program of the supervisor process itself."""
        self.command = [str(SMALL_PROGRAM)]
        self._attempts: dict[str, int] = {}
        tasks = [(role, index) for role, count in counts.items() for index in range(count)]
        ports = free_ports(2 * len(tasks) + 1)
        self.rendezvous_port = ports.pop()
        self.status_ports = {f"{role}-{index}": ports.pop() for role, index in tasks}
        self.cluster: dict[str, list[str]] = {}
        for role, _ in tasks:
            if role != "evaluator":
                self.cluster.setdefault(role, []).append(f"127.0.0.1:{ports.pop()}")
        self.cluster_file = directory / "cluster.json"
        self.cluster_file.write_text(json.dumps(self.cluster))
        self.started: list[Running] = []

    def start(self, task: str, *program: str, environ: Mapping[str, str] | None = None) -> Running:
        """Start the next attempt at `task`; its training process runs `program`."""
        role, index = task.split("-")
        attempt = self._attempts[task] = self._attempts.get(task, -1) + 1
        port = self.status_ports[task]
        log = self.directory / f"{task}-{attempt}.log"
        variables = {
            "DTJOB_NAME": "digits", "DTJOB_NAMESPACE": "default", "DTJOB_UID": self.uid, "DTJOB_ROLE": role,
            "DTJOB_INDEX": index, "DTJOB_ATTEMPT": str(attempt), "DTJOB_STRATEGY": self.strategy,
            "DTJOB_CLUSTER_FILE": str(self.cluster_file), "DTJOB_CLUSTER_HASH": "hash-1",
            "DTJOB_RENDEZVOUS_ADDRESS": f"127.0.0.1:{self.rendezvous_port}", "DTJOB_STATUS_PORT": str(port),
            "DTJOB_GRACE_SECONDS": "30", "DTJOB_PARENT": str(os.getpid()),
            "SMALL_PROGRAM_DIRECTORY": str(self.directory), "PYTHONPATH": str(ROOT / "trainer_image"),
        }  # fmt: skip
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", self.launcher, *self.command, *program],
                env={**os.environ, **variables, **(environ or {})},
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
            )
        running = Running(process, port, log)
        self.started.append(running)
        return running

    def end(self) -> None:
        """Kill what still runs; training processes die with their supervisors."""
        for running in self.started:
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGKILL)
            running.process.wait()


MakeJob = Callable[..., Job]
"""The fixture `make_job`: strategy and number of tasks by role → a job, whose processes end with the test."""


def start_group(make_job: MakeJob, program: str, workers: int = 2) -> tuple[Job, list[Running]]:
    """A job of a chief and `workers`, all running `program`: the chief first."""
    job = make_job("MultiWorkerMirrored", chief=1, worker=workers)
    return job, [job.start(task, program) for task in ("chief-0", *(f"worker-{i}" for i in range(workers)))]


def training_pid(running: Running) -> int:
    """The id of its training process, once there is one."""
    return wait_until(lambda: int(running.status().get("trainingPid", 0)), "a training process")
