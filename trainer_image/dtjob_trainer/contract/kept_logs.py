# SPDX-License-Identifier: Apache-2.0
"""Where the logs of the chief task are kept below the checkpoint directory (contract.md)."""

FOLDER = "logs"
MOST_ATTEMPTS = 10
"""Logs in the folder. The oldest go."""
GATHERED = "DTJOB_GATHERED_LOG"
"""The variable that tells a training process where its supervisor gathers the log that is to be copied to a bucket."""
GATHER_SECONDS = 0.2
"""How often a supervisor gathers the log for that process."""


def kept_name(attempt: int, uid: str) -> str:
    """The file of an attempt. Another job that uses the same directory has another uid."""
    return f"attempt-{attempt}.{uid[:8]}.log"
