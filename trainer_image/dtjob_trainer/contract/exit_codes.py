"""Every exit code of a training process and of its supervisor, with what it means (docs/contract.md)."""

from __future__ import annotations

FINISHED = 0
"""The program ended well."""
FAILED = 1
"""The program's own failure, or its supervisor cannot have a port that it needs."""
USAGE = 2
"""Called in a wrong way, or in an environment that the contract does not allow."""
COULD_NOT_KILL = 71
"""The supervisor cannot end processes that the training process left behind."""
PEER_LOST = 75
"""A peer was lost or preempted: the supervisor starts the training process again in place."""
STUCK = 76
"""Peers were lost over and over, without a new step and with none of them replaced."""
STALLED = 77
"""No new step came for stallTimeoutSeconds, and this task is what the others wait for."""
TERMINATED = 143
"""This task got SIGTERM, and has saved where it could."""


def of_signal(number: int) -> int:
    """The exit code of a process that signal `number` ended, as a shell and Kubernetes show it."""
    return 128 + number


def of_process(returncode: int) -> int:
    """The exit code for a `returncode` as in `subprocess`, where minus a number is a signal's."""
    return returncode if returncode >= 0 else of_signal(-returncode)
