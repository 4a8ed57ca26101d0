# SPDX-License-Identifier: Apache-2.0
"""Starts real training processes for a cluster on loopback, as the supervisor does, but without it.

The tests read every process's progress lines and exit code, and kill whom they like.
"""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dtjob.local.processes.addresses import free_ports
from tests.trainer.support import templates
from tests.trainer.support.templates import Process

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).parents[1] / "programs"
DIGITS = ROOT / "examples" / "digits.npz"
WAIT_SECONDS = 180.0
"""A hang is a failure; far above what anything here takes."""
BY_HAND_SECONDS = 590.0
"""The same of a program with many cases."""
STACKS_SECONDS = 5.0
"""A process that is asked for the stacks of its threads has ended by then."""
LAST_LINES = 100
ENVIRONMENT = {"PYTHONPATH": str(ROOT / "trainer_image"), "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONFAULTHANDLER": "1"}
"""faulthandler writes the stacks of all threads at SIGABRT."""
LEARNT = 0.6
"""An accuracy in ten classes: how far asynchronous steps get differs from run to run (0.83 to 0.92 of one program)."""


class Member:
    """One training process and what it has reported."""

    def __init__(
        self, name: str, process: Process, progress: int, go: int, log: Path, last_words: Callable[[], str]
    ) -> None:
        """`last_words`: what a failure shows of all tasks."""
        self.name, self.process, self.log, self._last_words = name, process, log, last_words
        self.lines: list[dict[str, Any]] = []
        self.status: dict[str, Any] = {}
        self._go = go
        self._changed = threading.Condition()
        self._closed = False
        threading.Thread(target=self._read, args=(progress,), daemon=True).start()

    def say(self, line: Mapping[str, Any]) -> None:
        """Write a line to the go pipe."""
        os.write(self._go, (json.dumps(line) + "\n").encode())

    def wait_until(self, reached: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Wait until the merged status fulfils `reached`; fails where the process ends before."""
        with self._changed:
            done = self._changed.wait_for(lambda: reached(self.status) or self._closed, WAIT_SECONDS)
            if not done or not reached(self.status):
                raise AssertionError(f"{self.name} never came to {what}: {self.status}\n{self._last_words()}")
            return dict(self.status)

    def wait_for_step(self, step: int) -> dict[str, Any]:
        """Wait until `step` is done."""
        return self.wait_until(lambda status: (status.get("step") or 0) >= step, f"step {step}")

    def wait_for_checkpoint(self, step: int = 1) -> dict[str, Any]:
        """Wait until a checkpoint of `step` or later is on disk."""
        return self.wait_until(lambda s: (s.get("checkpoint") or {}).get("step", 0) >= step, f"checkpoint {step}")

    def wait_for_file(self, path: Path) -> None:
        """Wait until `path` is there; fails where the process ends before."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not path.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{self.name} never made {path.name}: {self.status}\n{self._last_words()}")
            time.sleep(0.01)

    def exit_code(self) -> int:
        """Wait for the end; the exit code, negative for a signal. Fails where it neither ends nor reports."""
        while True:
            heard = len(self.lines)
            try:
                code = self.process.wait(WAIT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if len(self.lines) == heard:
                    raise AssertionError(f"{self.name} hangs: {self.status}\n{self._last_words()}") from None
        with self._changed:
            self._changed.wait_for(lambda: self._closed, WAIT_SECONDS)
        return code

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the process (kill -9 unless told otherwise)."""
        self.process.send_signal(number)

    def output(self) -> str:
        """What the process printed."""
        return self.log.read_text(errors="replace")

    def close(self) -> None:
        """End the process where it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._go)

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, encoding="utf-8") as pipe:
            for text in pipe:
                line = json.loads(text)
                with self._changed:
                    self.lines.append(line)
                    self.status.update(line)
                    self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Cluster:
    """The tasks of one job on loopback. Use as a context manager: it ends what still runs."""

    def __init__(
        self,
        directory: Path,
        strategy: str,
        counts: Mapping[str, int],
        program: str | Path,
        *args: str,
        checkpoint: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        uid: str = "uid-1",
        grace: int = 30,
        env: Mapping[str, str] | None = None,
        runner: Sequence[str] = templates.RUNNER,
        fresh: bool = False,
    ) -> None:
        """`checkpoint`: None for a key leaves it out. Without everyEpochs no time of a slow machine adds a checkpoint.

        `fresh`: start an interpreter for each process; others are forked from one that has imported TensorFlow. A
        `runner` of a test's own is always started so.
        """
        self.directory, self.checkpoints, self.strategy = directory, directory / "checkpoints", strategy
        directory.mkdir(parents=True, exist_ok=True)
        self.members: dict[str, Member] = {}
        self._fork = not fresh and runner == templates.RUNNER
        self._runner, self._arguments = runner, [str(PROGRAMS / program), *args]
        ports = iter(free_ports(sum(counts.values())))
        cluster = {
            role: [f"127.0.0.1:{next(ports)}" for _ in range(count)]
            for role, count in counts.items()
            if role != "evaluator"
        }
        cluster_file = directory / "cluster.json"
        cluster_file.write_text(json.dumps(cluster))
        self.tasks = [f"{role}-{index}" for role, count in counts.items() for index in range(count)]
        self._env = {
            **os.environ,
            **(env or {}),
            **ENVIRONMENT,
            "DTJOB_NAME": "test",
            "DTJOB_NAMESPACE": "default",
            "DTJOB_UID": uid,
            "DTJOB_STRATEGY": strategy,
            "DTJOB_CLUSTER_FILE": str(cluster_file),
            "DTJOB_GRACE_SECONDS": str(grace),
        }
        if options:
            self._env["DTJOB_STRATEGY_OPTIONS"] = json.dumps(options)
        if checkpoint is not None:
            settings = {"directory": str(self.checkpoints), "everyEpochs": 0, **checkpoint}
            self._env["DTJOB_CHECKPOINT"] = json.dumps({name: v for name, v in settings.items() if v is not None})
        self._starts = 0

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members.values():
            member.close()

    def __getitem__(self, task: str) -> Member:
        return self.members[task]

    def start(self, *tasks: str, go: bool = True) -> None:
        """Start the named tasks (all where none is named) and say go to them."""
        for task in tasks or self.tasks:
            if task in self.members:
                self.members[task].close()
            self.members[task] = self._spawn(task)
        if go:
            for task in tasks or self.tasks:
                with contextlib.suppress(BrokenPipeError):  # of a process that had nothing to do, and has ended
                    self.members[task].say({"generation": 1})

    def run(self, *tasks: str) -> None:
        """Start the named tasks and wait until those that train have ended well."""
        self.start(*tasks)
        self.expect_success(*tasks)

    def expect_success(self, *tasks: str) -> None:
        """Wait for exit 0 of the named tasks (all where none is named)."""
        for task in tasks or self.tasks:
            code = self[task].exit_code()
            assert code == 0, f"{task} ended with {code}\n{self._last_words()}"

    def _last_words(self) -> str:
        """The last lines of every task, and the stacks of those that still run, which ends them."""
        printed = {member: len(member.output().splitlines()) for member in self.members.values()}
        running = [member for member in printed if member.process.poll() is None]
        for member in running:
            member.kill(signal.SIGABRT)
        for member in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                member.process.wait(STACKS_SECONDS)
        lines: list[str] = []
        for member, count in printed.items():
            lines += (f"--- {member.name}", *member.output().splitlines()[max(0, count - LAST_LINES) :])
        return "\n".join(lines)

    def _spawn(self, task: str) -> Member:
        role, _, index = task.rpartition("-")
        progress_read, progress_write = os.pipe()
        go_read, go_write = os.pipe()
        self._starts += 1
        log = self.directory / f"{task}.{self._starts}.log"
        env = {
            **self._env,
            "DTJOB_ROLE": role,
            "DTJOB_INDEX": index,
        }
        pipes = {"DTJOB_PROGRESS_FD": progress_write, "DTJOB_GO_FD": go_read}
        with log.open("wb") as output:
            process: Process | None = None
            if self._fork:
                process = templates.fork(self._arguments, env, pipes, output.fileno(), self.directory)
            if process is None:
                command = [sys.executable, *self._runner, *self._arguments]
                process = templates.execute(command, env, pipes, output.fileno(), self.directory)
        os.close(progress_write)
        os.close(go_read)
        return Member(task, process, progress_read, go_write, log, self._last_words)


SAVED_ARRAYS = """
import pathlib, pickle, sys
import tensorflow as tf
reader = tf.train.load_checkpoint(sys.argv[1])
others = ("state", "_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter")  # the last two: tf.train.Checkpoint's
names = [name for name in reader.get_variable_to_shape_map() if not name.startswith(others)]
pathlib.Path(sys.argv[2]).write_bytes(pickle.dumps({name: reader.get_tensor(name).tobytes() for name in names}))
"""


def begun_by_hand(arguments: Sequence[str], output: int, directory: Path) -> Process:
    """Start a program with its arguments that runs in no job, and prints to `output`."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("DTJOB_", "TF_CONFIG"))}
    environ |= ENVIRONMENT
    forked = templates.fork(arguments, environ, {}, output, directory)
    return forked or templates.execute([sys.executable, *arguments], environ, {}, output, directory)


def by_hand(program: str, *arguments: str, directory: Path) -> str:
    """What a program prints that runs in no job: the name of a file of PROGRAMS, or code. Fails where it does.

    It runs in `directory`, and is forked as the members of a Cluster are.
    """
    file = PROGRAMS / program
    if "\n" in program:
        file = directory / "code.py"
        file.write_text(program)
    log = directory / f"{file.name}.log"
    with log.open("wb") as output:
        code = begun_by_hand([str(file), *arguments], output.fileno(), directory).wait(BY_HAND_SECONDS)
    assert code == 0, log.read_text(errors="replace")[-5000:]
    return log.read_text(errors="replace")


ARCHIVE = b"PK\x03\x04"
"""How a file of Keras's format begins, which is a ZIP archive."""


def saved_arrays(directory: Path, step: int) -> dict[str, bytes]:
    """The bytes of every weight and optimizer variable of checkpoint `step`, by name.

    Models that a callback has written are left out: their archives hold the time. Runs in a process of its own: the
    tests themselves import no TensorFlow.
    """
    with TemporaryDirectory() as out:
        by_hand(SAVED_ARRAYS, str(directory / f"ckpt-{step}"), f"{out}/arrays", directory=Path(out))
        found: dict[str, bytes] = pickle.loads(Path(out, "arrays").read_bytes())
    arrays = {name: array for name, array in found.items() if not array.startswith(ARCHIVE)}
    assert arrays
    return arrays


def args_of(**options: object) -> Sequence[str]:
    """Keyword arguments as command-line options: epochs=3 → --epochs=3."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
