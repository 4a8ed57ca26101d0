# SPDX-License-Identifier: Apache-2.0
"""Private names of Python that dtjob calls. It replaces nothing in Python."""

import atexit
import sys
import threading
from collections.abc import Mapping
from types import FrameType


def wait_for_threads() -> None:
    """Wait for all threads that are no daemons, as Python does at its end."""
    threading._shutdown()  # type: ignore[attr-defined]


def call_exit_functions() -> None:
    """Call what was registered with `atexit`, as Python does at its end."""
    atexit._run_exitfuncs()


def stacks() -> Mapping[int, FrameType]:
    """The innermost frame of each thread, by the number of the thread."""
    return sys._current_frames()
