# SPDX-License-Identifier: Apache-2.0
"""Ends a process together with the process that started it, however that one ends."""

import ctypes
import os

from dtjob_trainer.contract.exit_codes import of_signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)  # loaded here, because die_with_parent also runs between fork and exec


def die_with_parent(signal_number: int, parent: int) -> None:
    """Have the kernel send `signal_number` to this process when the thread that started it ends.

    `parent` is the id of the process that started it. If that process is already gone, this one ends at once.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(of_signal(signal_number))
