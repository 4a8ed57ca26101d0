# SPDX-License-Identifier: Apache-2.0
"""All exit codes of a training process and of its supervisor, and what they mean (contract.md)."""

FINISHED = 0
"""The program ended well."""
FAILED = 1
"""The program failed, or its supervisor cannot listen on a port that it needs."""
USAGE = 2
"""The arguments are wrong, or the environment does not follow the contract."""
COULD_NOT_KILL = 71
"""The supervisor cannot end processes that the training process left behind."""
PEER_LOST = 75
"""A peer was lost or preempted: the supervisor starts the training process again in place."""
STUCK = 76
"""Peers were lost several times in a row. There was no new step, and no peer was replaced."""
STALLED = 77
"""No new step came for stallTimeoutSeconds, and the other tasks wait for this one."""
TERMINATED = 143
"""This task got SIGTERM. It has saved if it could."""


def of_signal(number: int) -> int:
    """The exit code that a shell and Kubernetes show for a process that signal `number` ended."""
    return 128 + number


def of_process(returncode: int) -> int:
    """The exit code for a `returncode` of `subprocess`. There a negative number is a signal."""
    return returncode if returncode >= 0 else of_signal(-returncode)
