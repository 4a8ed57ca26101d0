# SPDX-License-Identifier: Apache-2.0
"""examples/plain.py: an image's own program under MultiWorkerMirrored, started again as a group by the operator."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtjob.local.processes.addresses import free_ports
from tests.trainer.support.harness import ROOT, WAIT_SECONDS, saved_arrays

STEPS_PER_EPOCH = 29
"""1,437 examples in batches of 48, the rest dropped."""


class Worker:
    """One process of the program, and what it has printed."""

    def __init__(self, directory: Path, config: dict[str, object], *args: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("DTJOB_")}
        environ |= {"TF_CONFIG": json.dumps(config), "TF_CPP_MIN_LOG_LEVEL": "2"}
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / "plain.py"), *args],
            env=environ,
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until a printed line matches `pattern`."""

        def found() -> re.Match[str] | None:
            return next((m for line in self.lines if (m := re.search(pattern, line))), None)

        with self._changed:
            self._changed.wait_for(lambda: found() or not self._reader.is_alive(), WAIT_SECONDS)
        match = found()
        assert match, f"never printed {pattern!r}:\n{self.output()}"
        return match

    def exit_code(self) -> int:
        """Wait for the end."""
        try:
            code = self.process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"hangs:\n{self.output()}") from None
        self._reader.join(WAIT_SECONDS)
        return code

    def output(self) -> str:
        """All that it printed."""
        return "\n".join(self.lines)

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip())
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


@contextlib.contextmanager
def group(directory: Path, checkpoints: Path, *args: str) -> Iterator[list[Worker]]:
    """Two workers, each in a new directory; only worker 0 is given `checkpoints`."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
    workers = []
    for index in range(2):
        config: dict[str, object] = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        own = [*args, f"--checkpoints={checkpoints}"] if index == 0 else args
        workers.append(Worker(directory / f"worker-{index}", config, *own))
    try:
        yield workers
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()


@pytest.mark.slow  # tests/e2e/jobs/test_own_image.py shows it of pods in every run
@pytest.mark.parametrize("victim", [0, 1])
def test_a_group_that_lost_a_worker_ends_and_a_new_one_goes_on_with_the_same_bits(tmp_path: Path, victim: int) -> None:
    epochs, every = "--epochs=8", "--save-every=20"
    with group(tmp_path / "quiet", tmp_path / "quiet-checkpoints", epochs, every) as quiet:
        assert [worker.exit_code() for worker in quiet] == [0, 0], quiet[0].output() + quiet[1].output()
    accuracy = quiet[0].wait_for(r"held-out accuracy ([\d.]+)")
    assert float(accuracy[1]) > 0.9

    checkpoints = tmp_path / "checkpoints"
    with group(tmp_path / "first", checkpoints, epochs, every, "--slow=0.02") as workers:
        workers[0].wait_for("epoch 2/8")
        workers[victim].process.kill()
        codes = [worker.exit_code() for worker in workers]
        assert codes[victim] == -signal.SIGKILL
        assert codes[1 - victim] == 1
    with group(tmp_path / "second", checkpoints, epochs, every) as workers:  # every pod is a new one
        assert [worker.exit_code() for worker in workers] == [0, 0], workers[0].output() + workers[1].output()
        restored = int(workers[0].wait_for(r"step (\d+): restored, 2 replicas")[1])
        assert restored >= 40
        assert workers[0].wait_for(r"held-out accuracy ([\d.]+)")[1] == accuracy[1]
    last = 8 * STEPS_PER_EPOCH
    assert saved_arrays(checkpoints, last) == saved_arrays(tmp_path / "quiet-checkpoints", last)


@pytest.mark.slow
def test_sigterm_ends_the_workers_at_once_and_a_finished_run_stays_finished(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    with group(tmp_path / "first", checkpoints, "--epochs=1000", "--slow=0.01", "--save-every=10") as workers:
        workers[0].wait_for("epoch 2/")
        for worker in workers:
            worker.process.terminate()
        assert all(worker.exit_code() in (143, 1) for worker in workers)  # 1: the other one went first
    with group(tmp_path / "second", checkpoints, "--epochs=1") as workers:
        assert [worker.exit_code() for worker in workers] == [0, 0]
        assert "epoch" not in workers[0].output()
