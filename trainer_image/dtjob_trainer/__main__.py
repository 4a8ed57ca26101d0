# SPDX-License-Identifier: Apache-2.0
"""`python3 -m dtjob_trainer ENTRYPOINT ARGS…`: the supervisor of one task, the command of a training container."""

import signal

if __name__ == "__main__":  # Without a handler PID 1 drops SIGTERM. Blocked, the signal waits until there is a handler.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))

import asyncio
import contextlib
import os
import resource
import sys
from typing import NoReturn

from dtjob_trainer.contract import exit_codes, log_line, source
from dtjob_trainer.contract.parent import die_with_parent
from dtjob_trainer.contract.task import Task
from dtjob_trainer.contract.template import Template
from dtjob_trainer.errors import TaskError
from dtjob_trainer.supervisor import reaper
from dtjob_trainer.supervisor.kept_log import KeptLog, keep_log
from dtjob_trainer.supervisor.supervisor import Supervisor

MOST_FILES = 1 << 16
USAGE = "usage: python3 -m dtjob_trainer ENTRYPOINT [ARGS…]   (ENTRYPOINT: a path that ends in .py, or a module name)"


def main(arguments: list[str], template: Template | None = None) -> int:
    """Supervise the program `arguments` (the entrypoint and its arguments). Returns the exit code of the container.

    `template`: fork training processes from it (launcher.py). None: the first one leaves a template behind if it helps.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        (sys.stdout if arguments else sys.stderr).write(f"{USAGE}\n")
        return exit_codes.FINISHED if arguments else exit_codes.USAGE
    try:
        task = Task.from_environment(os.environ)
        if task is None:
            raise TaskError(
                "DTJOB_ROLE is not set: this is the command of a dtjob training container; "
                f"to run the program alone, use `python3 {arguments[0]}`"
            )
        source.enter(os.environ)
        kept = keep_log(task)
        command = [sys.executable, "-m", "dtjob_trainer.run", *arguments]
        supervisor = Supervisor(task, command, os.environ, template, kept.take if kept else None)
    except TaskError as error:
        log_line.write(sys.stderr, str(error), level="error")
        return exit_codes.USAGE
    return supervise(supervisor, task.parent, kept)


def supervise(supervisor: Supervisor, parent: int | None = None, kept: KeptLog | None = None) -> NoReturn:
    """Run `supervisor` as this whole process, and end the process with its exit code.

    `parent`: the process that started this one (DTJOB_PARENT). When it ends, this process gets SIGTERM.
    `kept`: what keeps the log of this process and of those that it starts.
    """
    if parent is not None:
        die_with_parent(signal.SIGTERM, parent)
    reaper.adopt_orphans()
    _allow_many_files()
    asyncio.run(_run_and_exit(supervisor, kept))
    raise AssertionError("unreachable")


def _allow_many_files() -> None:
    """Raise the limit of open files, often 1,024. A chief's supervisor has a connection from each task."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _run_and_exit(supervisor: Supervisor, kept: KeptLog | None) -> NoReturn:
    code = await supervisor.run()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    if kept is not None:
        kept.end()
    os._exit(code)  # a look-up that hangs in a thread must not delay the end


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
