# SPDX-License-Identifier: Apache-2.0
"""The exit codes with which a training container ends (contract.md), as far as they say more than "failed"."""

import signal

COULD_NOT_KILL = 71
"""A supervisor that could not end what its training process left behind."""
RESTARTED_IN_VAIN = 76
"""A supervisor whose training process kept losing its peers (75 each time) without a new step."""
STALLED = 77
"""A supervisor whose task made no new step for failurePolicy.stallTimeoutSeconds, and is what the others wait for."""
TOLD_TO_END = 128 + signal.SIGTERM
"""A supervisor that got SIGTERM: its training process has saved, where it had something to save."""


def of_signal(number: int) -> int:
    """The exit code of what was ended by this signal, as shells and kubelets write it."""
    return 128 + number


def signal_of(code: int) -> int | None:
    """The signal that an exit code speaks of, None if it speaks of none."""
    return code - 128 if 128 < code < 128 + signal.NSIG else None
