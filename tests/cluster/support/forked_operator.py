# SPDX-License-Identifier: Apache-2.0
"""An operator that is forked from a process which has its modules already, for tests that start it dozens of times.

Started plainly it spends more than a second of the processor on imports. What is killed is a process of its own all the
same, with nothing in memory of the one before.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.support.operator_process import OPERATOR_DIRECTORY, OperatorProcess

ROOT = OPERATOR_DIRECTORY.parent


class ForkedOperator(OperatorProcess):
    """As `OperatorProcess`, with `close` at the end."""

    def __init__(self, kubeconfig: Path, namespace: str, log: Path, resync_seconds: float = 180.0) -> None:
        super().__init__(kubeconfig, namespace, log, resync_seconds)
        self._pid: int | None = None
        self._template = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{OPERATOR_DIRECTORY}:{ROOT}"},
            text=True,
            bufsize=1,
        )

    def start(self) -> None:
        """Fork it; it works as soon as it can."""
        self._pid = self._ask({"log": str(self.log), "arguments": self._arguments})

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        assert self._pid is not None
        os.kill(self._pid, signal.SIGKILL)  # it cannot be another's: its parent has not waited for it yet
        self._ask({"wait": self._pid})
        self._pid = None

    def running(self) -> bool:
        """Whether it was started, and not killed since."""
        return self._pid is not None

    def close(self) -> None:
        """End it, and what it is forked from."""
        if self.running():
            self.kill()
        self._template.communicate()

    def _ask(self, wish: dict[str, object]) -> int:
        assert self._template.stdin is not None
        assert self._template.stdout is not None
        self._template.stdin.write(json.dumps(wish) + "\n")
        return int(self._template.stdout.readline())


def serve() -> None:
    """Fork operators, and wait for them, as is asked line by line; until nobody asks any more."""
    from dtjob.cli import operator  # noqa: F401 (imported once for all that are forked)
    from dtjob.cli.main import main

    children: set[int] = set()
    for line in sys.stdin:
        wish = json.loads(line)
        if "wait" in wish:
            os.waitpid(wish["wait"], 0)
            children.discard(wish["wait"])
            print(wish["wait"], flush=True)
            continue
        child = os.fork()
        if child == 0:
            log = os.open(wish["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            sys.argv = ["dtjob", *wish["arguments"]]
            try:
                main()
            finally:
                os._exit(1)  # it runs until it is killed
        children.add(child)
        print(child, flush=True)
    for child in children:  # the test has gone
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    serve()
