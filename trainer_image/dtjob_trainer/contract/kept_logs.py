# SPDX-License-Identifier: Apache-2.0
"""Where logs are kept below the checkpoint directory (contract.md)."""

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
