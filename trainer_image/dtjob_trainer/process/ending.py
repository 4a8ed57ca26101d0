# SPDX-License-Identifier: Apache-2.0
"""The end of a program: waits for its background work, as Python does. No TensorFlow here."""

import sys
import threading
import traceback
from collections.abc import Callable

from dtjob_trainer.frameworks import python

TELL_SECONDS = 10.0
"""If the background work takes longer, the log says what the process waits for."""
AFTER_A_FAILURE_SECONDS = 60.0
"""After a failure, background work may take so long."""


def wait_as_python_does(tell: Callable[[str], None], limit: float | None, end: Callable[[], object]) -> None:
    """Wait for the program's threads, then call its `atexit` functions, as Python does. Call in the main thread.

    Exceptions are printed and do not change the exit code. If it takes long, `tell` is called with what the process
    waits for. After `limit` seconds `end` is called, which ends the process. None: there is no limit.
    """
    timers = [threading.Timer(TELL_SECONDS, lambda: tell(_what_goes_on()))]
    timers += [] if limit is None else [threading.Timer(limit, end)]
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        python.wait_for_threads()
    except BaseException:
        sys.stderr.write("Exception ignored in the wait for threads:\n")
        traceback.print_exc()
    python.call_exit_functions()
    for timer in timers:
        timer.cancel()


def _what_goes_on() -> str:
    main = threading.main_thread()
    names = [each.name for each in threading.enumerate() if each is not main and not each.daemon]
    of_what = f"its threads {', '.join(names)}" if names else "what it has registered with atexit"
    return f"the program has ended, but for {of_what}: waiting for it"
