# SPDX-License-Identifier: Apache-2.0
"""Processes of the hand-written loop: nothing but TF_CONFIG, as TensorFlow's guide has it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from dtjob.local.processes.addresses import free_ports
from tests.trainer.support.harness import WAIT_SECONDS

PROGRAM = Path(__file__).parent / "programs" / "by_hand.py"


class HandWritten:
    """The tasks of one run on loopback. Use as a context manager: it ends what still runs."""

    def __init__(self, directory: Path, counts: Mapping[str, int], *args: str, program: Path = PROGRAM) -> None:
        """A `program` other than this one may train in one process too, without TF_CONFIG."""
        directory.mkdir(parents=True, exist_ok=True)
        ports = iter(free_ports(sum(counts.values())))
        self._cluster = {role: [f"127.0.0.1:{next(ports)}" for _ in range(n)] for role, n in counts.items()}
        self._directory, self._command = directory, [sys.executable, str(program), *args]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "HandWritten":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def start(self) -> None:
        """Start every task."""
        for role, hosts in self._cluster.items():
            for index in range(len(hosts)):
                self.start_task(role, index)

    def start_task(self, role: str, index: int) -> None:
        """Start one task."""
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
        if sum(map(len, self._cluster.values())) > 1:
            env["TF_CONFIG"] = json.dumps({"cluster": self._cluster, "task": {"type": role, "index": index}})
        with (self._directory / f"{role}-{index}.log").open("ab") as log:
            self.processes[f"{role}-{index}"] = subprocess.Popen(
                self._command, env=env, stdout=log, stderr=subprocess.STDOUT
            )

    def wait(self) -> dict[str, int]:
        """Wait for the end of every task; their exit codes."""
        return {task: process.wait(WAIT_SECONDS) for task, process in self.processes.items()}

    def expect_success(self) -> None:
        """Wait for the end; raises RuntimeError where a task has failed."""
        codes = self.wait()
        if any(codes.values()):
            logs = "\n".join(path.read_text(errors="replace") for path in self._directory.glob("*.log"))
            raise RuntimeError(f"the hand-written loop failed: {codes}\n{logs}")
