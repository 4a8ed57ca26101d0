# SPDX-License-Identifier: Apache-2.0
"""Operators that are forked from a process which has their modules already, for tests that start them by the hundred.

Started plainly each spends more than a second of the processor on imports. What is killed is a process of its own all
the same, with nothing in memory of the one before.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cluster.support.operator_process import LIBC, OPERATOR_DIRECTORY, PR_SET_PDEATHSIG, OperatorProcess

ROOT = OPERATOR_DIRECTORY.parent
IMPATIENT = 8
"""Seconds after which these operators give up a call without an answer, and a watch without a word: not 30 and 90."""


class Template:
    """What they are forked from. To be entered; at the end all of them are killed."""

    def __enter__(self) -> Self:
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{OPERATOR_DIRECTORY}:{ROOT}"},
            text=True,
            bufsize=1,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def ask(self, wish: dict[str, object]) -> int:
        """The pid of an operator that is started now; or 1 where one runs, or has been waited for, and else 0."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            self._process.stdin.write(json.dumps(wish) + "\n")
            return int(self._process.stdout.readline())


class ForkedOperator(OperatorProcess):
    """As `OperatorProcess`, forked from a template."""

    def __init__(
        self, template: Template, kubeconfig: Path, namespace: str, log: Path, resync_seconds: float = 180.0
    ) -> None:
        super().__init__(kubeconfig, namespace, log, resync_seconds, ("--report-seconds=5",))
        self._template, self._pid = template, 0

    def start(self) -> None:
        """Fork it; it works as soon as it can."""
        self._pid = self._template.ask({"log": str(self.log), "arguments": self._arguments})

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        os.kill(self._pid, signal.SIGKILL)  # it cannot be another's: its parent has not waited for it yet
        self._template.ask({"wait": self._pid})
        self._pid = 0

    def running(self) -> bool:
        """Whether it was started, and has neither ended nor been killed since."""
        return bool(self._pid and self._template.ask({"look": self._pid}))


def serve() -> None:
    """Fork operators, and wait for them, as is asked line by line; until nobody asks any more."""
    from dtjob.cli import operator  # noqa: F401 (imported once for all that are forked)
    from dtjob.cli.main import app, main
    from dtjob.kube.calls import client
    from dtjob.kube.watching import handlers

    client.SILENT_SECONDS = client.CALL_TIMEOUT_SECONDS = handlers.CALL_TIMEOUT_SECONDS = IMPATIENT
    app("operator")  # so that its module is imported, too
    gc.freeze()  # else each of them copies and looks through all that is here
    children: set[int] = set()
    for line in sys.stdin:
        wish = json.loads(line)
        if "wait" in wish:
            os.waitpid(wish["wait"], 0)
            children.discard(wish["wait"])
            print(1, flush=True)
            continue
        if "look" in wish:
            ended = os.waitid(os.P_PID, wish["look"], os.WEXITED | os.WNOHANG | os.WNOWAIT)
            print(int(ended is None), flush=True)
            continue
        child = os.fork()
        if child == 0:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
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
