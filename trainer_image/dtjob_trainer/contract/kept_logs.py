# SPDX-License-Identifier: Apache-2.0
"""Where and how logs are kept below the checkpoint directory (contract.md)."""

import threading
from collections.abc import Callable

from dtjob_trainer.contract.task import Task

FOLDER = "logs"
MOST_ATTEMPTS = 10
"""Logs of one task in the folder. The oldest go."""
GATHERED = "DTJOB_GATHERED_LOG"
"""The variable that tells a training process where its supervisor gathers the log that is to be copied to a bucket."""
GATHER_SECONDS = 0.2
"""How often a supervisor gathers the log for that process."""


def pattern(task: Task) -> str:
    """The files of all attempts at a task, of any job that uses the directory."""
    return f"{task.id}.*.log"


def kept_name(task: Task) -> str:
    """The file of this attempt. Another job that uses the same directory has another uid."""
    return f"{task.id}.{task.attempt}.{task.uid[:8]}.log"


def write_at_times(
    seconds: float,
    over: threading.Event,
    text: Callable[[], bytes],
    write: Callable[[bytes], None],
    warn: Callable[[Exception], None],
) -> None:
    """Write the log every so many `seconds`, and once more when `over` is set, each time only if it has changed.

    - write: replaces what was written before, and may take any time.
    - warn: hears of the first write that fails.
    """
    written, warned, ended = b"", False, False
    while not ended:
        ended = over.wait(seconds)
        try:
            if (now := text()) != written:
                write(now)
                written = now
        except Exception as error:  # a log that cannot be kept is no failure of the training
            if not warned:
                warn(error)
            warned = True
