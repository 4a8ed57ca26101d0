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


def end_after(seconds: float, end: Callable[[], object]) -> None:
    """Call `end`, which ends the process, unless it has ended before."""
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def wait_as_python_does(tell: Callable[[str], None], after: float = TELL_SECONDS) -> None:
    """Wait for the program's threads, then call what it has registered with `atexit`, as the interpreter does at its
    end. Call in the main thread.

    What is raised there is printed and changes no exit code. `tell` hears what is waited for, where it takes longer
    than `after` seconds.
    """
    telling = threading.Timer(after, lambda: tell(_what_goes_on()))
    telling.daemon = True
    telling.start()
    try:
        threading._shutdown()  # type: ignore[attr-defined]
    except BaseException:
        sys.stderr.write("Exception ignored in the wait for threads:\n")
        traceback.print_exc()
    atexit._run_exitfuncs()
    telling.cancel()


def _what_goes_on() -> str:
    main = threading.main_thread()
    names = [each.name for each in threading.enumerate() if each is not main and not each.daemon]
    of_what = f"its threads {', '.join(names)}" if names else "what it has registered with atexit"
    return f"the program has ended, but for {of_what}: waiting for it"
