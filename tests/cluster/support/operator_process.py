# SPDX-License-Identifier: Apache-2.0
"""The operator as users run it, `dtjob operator`, as a process of its own that a test may kill and start again."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tools.cluster.rest import DEFAULT_TIMEOUT

OPERATOR_DIRECTORY = Path(__file__).resolve().parents[3] / "operator"
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


class OperatorProcess:
    """One `dtjob operator` for one namespace, or for all of them. Its log goes to `log`."""

    def __init__(
        self,
        kubeconfig: Path,
        namespace: str | None,
        log: Path,
        resync_seconds: float = 180.0,
        more: tuple[str, ...] = (),
    ) -> None:
        self._arguments = [
            "operator",
            f"--kubeconfig={kubeconfig}",
            *([f"--namespace={namespace}"] if namespace else []),
            f"--resync-seconds={resync_seconds}",
            "--report-seconds=0.2",
            *more,
        ]
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it works as soon as it can."""
        environment = {**os.environ, "PYTHONPATH": str(OPERATOR_DIRECTORY)}
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dtjob", *self._arguments],
                stdout=output,
                stderr=output,
                env=environment,
                preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
            )

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        """Kill and start."""
        self.kill()
        self.start()

    def terminate(self) -> int:
        """SIGTERM; returns the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(DEFAULT_TIMEOUT)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP."""
        assert self._process is not None
        self._process.send_signal(number)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Keep it from looking at what is done in between, of which it learns all at once."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def ended(self, timeout: float = DEFAULT_TIMEOUT) -> int:
        """Wait until it has ended by itself; returns the exit code."""
        assert self._process is not None
        return self._process.wait(timeout)

    def wait_log(self, words: str, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Wait until its log says this. Raises AssertionError with the log where it does not."""
        limit = time.monotonic() + timeout
        while words not in self.log.read_text():
            assert self.running(), f"the operator ended:\n{self.log.read_text()}"
            assert time.monotonic() < limit, f"no {words!r} after {timeout:.0f} s:\n{self.log.read_text()}"
            time.sleep(0.05)

    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None
