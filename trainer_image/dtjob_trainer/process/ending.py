"""The end of a program: what it still does in the background is waited for, as Python does. No TensorFlow here."""

from __future__ import annotations

import atexit
import sys
import threading
import traceback
from collections.abc import Callable

TELL_SECONDS = 10.0
"""For which a program may go on in the background before the log says what is waited for."""
AFTER_A_FAILURE_SECONDS = 60.0
"""For which it may go on after it has failed."""


def wait_as_python_does(tell: Callable[[str], None], limit: float | None, end: Callable[[], object]) -> None:
    """Wait for the program's threads, then call what it has registered with `atexit`, as the interpreter does at its
    end. Call in the main thread.

    What is raised there is printed and changes no exit code. `tell` hears what is waited for, where it takes long.
    `end`, which ends the process, is called where it takes longer than `limit` seconds (None: it may take for ever).
    """
    timers = [threading.Timer(TELL_SECONDS, lambda: tell(_what_goes_on()))]
    timers += [] if limit is None else [threading.Timer(limit, end)]
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        threading._shutdown()  # type: ignore[attr-defined]
    except BaseException:
        sys.stderr.write("Exception ignored in the wait for threads:\n")
        traceback.print_exc()
    atexit._run_exitfuncs()
    for timer in timers:
        timer.cancel()


def _what_goes_on() -> str:
    main = threading.main_thread()
    names = [each.name for each in threading.enumerate() if each is not main and not each.daemon]
    of_what = f"its threads {', '.join(names)}" if names else "what it has registered with atexit"
    return f"the program has ended, but for {of_what}: waiting for it"
